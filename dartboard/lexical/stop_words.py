"""Stop words by language: words too common to distinguish passages. The lists are short on purpose.

BM25's idf already gives common words a low weight. Words that also carry meaning (will, can, us, may, not)
are not in the lists and can be found; so can all words of languages without a list. Fragments left by an
apostrophe (don't, l'eau) are in the lists.
"""

_LISTS = {
    "english": """
        a about all also am an and any are as at be because been being but by did do does doing for from
        had has have having he her here hers him his how i if in into is it its itself me my of on or our
        ours she so some such than that the their theirs them then there these they this those to too
        very was we were what when where which while who whom whose why with would you your yours
        s t d ll m re ve don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn""",
    "german": """
        aber als am an auch auf aus bei bin bis bist da das dass dem den der des die dir doch du durch ein
        eine einem einen einer eines er es für hat habe haben ich ihm ihn ihr ihre im in ist ja kann man
        mein mich mir mit nach noch nur ob oder sein seine sich sie sind so über um und uns unter von vor
        war was wenn werden wer wie wir wird wo zu zum zur""",
    "french": """
        à au aux avec c ce ces cette d dans de des du elle elles en est et être eu eux il ils j je l la le
        les leur leurs lui m ma mais me mes moi mon n nos notre nous on ont ou où par pas pour qu que qui s
        sa se ses si son sont sur t ta te tes toi ton tu un une vos votre vous y""",
    "spanish": """
        a al como con de del desde e el ella ellas ellos en es esa ese eso esta este esto está fue ha han
        hay la las le les lo los más me mi mis muy nos o para pero por que qué se ser si sin sobre son su
        sus te tu un una unas unos y ya yo""",
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}
"""Stop words, case folded, of the languages that have a list."""
