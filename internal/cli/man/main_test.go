package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"modelgate/internal/cli"
)

// pageOf is the file name of a command's manual page.
func pageOf(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
}

// walk visits a command and all below it that help shows.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			walk(c, visit)
		}
	}
}

// TestManualPages has a page for each command, which the formatters of manual
// pages read without a warning, and a completion script for each shell, which the
// shell parses.
func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := write(folder, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	checks := checkers(t)
	walk(cli.Root(), func(cmd *cobra.Command) {
		if cmd.Name() == "help" {
			return
		}
		file := filepath.Join(folder, "man1", pageOf(cmd))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		for _, want := range []string{"Modelgate v1.2.3", strings.ReplaceAll(cmd.CommandPath(), " ", "-")} {
			if !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
		for _, check := range checks {
			if out, err := exec.Command(check[0], append(check[1:], file)...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s %s: %v\n%s", check[0], file, err, out)
			}
		}
	})
}

// checkers are the formatters that there are.
func checkers(t *testing.T) (found [][]string) {
	for _, c := range [][]string{{"groff", "-man", "-Tutf8", "-ww", "-z"}, {"mandoc", "-Tlint", "-Werror"}} {
		if _, err := exec.LookPath(c[0]); err != nil {
			t.Logf("NOT PROVED HERE: that %s reads the pages; it is not installed", c[0])
			continue
		}
		found = append(found, c)
	}
	return found
}

func TestCompletionFilesParse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := write(folder, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"bash", "-n", "modelgate.bash"}, {"zsh", "-n", "_modelgate"}, {"fish", "--no-execute", "modelgate.fish"}} {
		t.Run(c[0], func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c[0]); err != nil {
				t.Skipf("NOT PROVED HERE: %s is not installed", c[0])
			}
			file := filepath.Join(folder, "completions", c[2])
			if out, err := exec.Command(c[0], c[1], file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestSameBytesTwice lets a release be built again.
func TestSameBytesTwice(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	first, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{first, second} {
		if err := write(folder, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("diff", "-r", first, second).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(first, "man1", "modelgate.1"))
	if err != nil || !strings.Contains(string(text), "Nov 2023") {
		t.Errorf("%v: the date is not that of SOURCE_DATE_EPOCH:\n%.300s", err, text)
	}
}
