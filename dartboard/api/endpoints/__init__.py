"""One file an endpoint group: its schemas, its routes, and the work behind them."""
