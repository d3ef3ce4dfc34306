// Command man writes the manual pages and the shell completions of modelgate
// into a folder: man1/*.1, and completions/ for bash, zsh and fish. It is a tool of
// the build, so that the program itself does without the generators.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"modelgate/internal/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes all of it. The date of the pages is SOURCE_DATE_EPOCH, where set.
func write(folder, version string) error {
	pages, completions := filepath.Join(folder, "man1"), filepath.Join(folder, "completions")
	for _, dir := range []string{pages, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root := cli.Root()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "Modelgate " + version, Manual: "Modelgate"}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	if err := root.GenBashCompletionFileV2(filepath.Join(completions, "modelgate.bash"), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(completions, "_modelgate")); err != nil {
		return err
	}
	return root.GenFishCompletionFile(filepath.Join(completions, "modelgate.fish"), true)
}
