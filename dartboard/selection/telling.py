"""English words that decide what a sentence says: numbers in words, denials, and words that have an opposite.

"Access is allowed" and "access is forbidden" share nearly all of their words, and are no copies of each
other. Among the words of :mod:`dartboard.selection.wording` these count as names do: a copy brings no other
ones. Words that editors exchange for others of the same meaning (many, often, large, first, after) are left
out, and so is what pages say around a text (no, yes, more).
"""

_WORDS = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
trillion second third fourth fifth sixth seventh eighth ninth tenth once twice half quarter double
triple monday tuesday wednesday thursday friday saturday sunday daily weekly monthly yearly hourly not
never none nothing nobody neither nor without unless cannot increase increases increased increasing
decrease decreases decreased decreasing rise rises rose risen rising fall falls fell fallen falling grow
grows grew grown shrink shrinks shrank shrunk raise raises raised lower lowers lowered higher highest
lowest high low up down upper fewer less least allow allows allowed permit permits permitted forbid
forbids forbidden prohibit prohibits prohibited deny denies denied accept accepts accepted reject
rejects rejected approve approves approved grant grants granted revoke revokes revoked confirm confirms
confirmed refute refutes refuted open opens opened opening close closes closed closing lock locks locked
unlock unlocks unlocked enable enables enabled disable disables disabled on off activate activates
activated deactivate deactivates deactivated stop stops stopped connect connects connected disconnect
disconnects disconnected add adds added remove removes removed include includes included exclude
excludes excluded install installs installed uninstall uninstalls uninstalled encrypt encrypts encrypted
decrypt decrypts decrypted upgrade upgrades upgraded downgrade downgrades downgraded push pull read
write buy buys bought sell sells sold borrow lend import imports imported export exports exported win
wins won lose loses lost pass passes passed fail fails failed succeed succeeds succeeded success failure
gain gains gained loss losses profit profits better worse best worst improve improves improved worsen
worsens worsened cause causes caused prevent prevents prevented inhibit inhibits inhibited promote
promotes promoted true false right wrong correct incorrect valid invalid legal illegal safe unsafe
dangerous harmless harmful positive negative mandatory optional required minimum maximum always present
absent public private internal external inside outside left top bottom front back forward backward north
south east west northern southern eastern western hot cold warm cool wet dry hard soft fast slow early
late old young male female man woman benign malignant acute chronic agonist antagonist alive dead guilty
innocent rich poor cheap expensive black white red green blue yellow
"""

TELLING = frozenset(_WORDS.split())
