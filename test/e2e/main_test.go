package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain runs several small proofs at once, for they mostly wait, and the
// full ones one after the other, for their figures count.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", size("4", "1")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
