package lane

// WatchAfter is for tests that wait for the watch.
const WatchAfter = watchAfter
