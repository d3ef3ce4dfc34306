// Package docs runs the documents. Its test runs every shell command and every
// snippet of README.md and the pages in docs, in the order of the page and
// against a fresh gateway for each page, and checks the other blocks.
//
// A comment on the line before a block tells the test what a reader sees from
// the text:
//
//	<!-- file: NAME -->       the block is the content of that file
//	<!-- output -->           the block before prints this; … stands for anything
//	<!-- new terminal -->     the command keeps running; it starts a gateway
//	<!-- not run: REASON -->  the block cannot run here
//	<!-- agent: NAME -->      the block starts that coding agent; make test-agents runs it
//
// "go test -v -run Pages ./test/docs" lists every block with what became of it.
package docs
