package cli

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) version() *cobra.Command {
	return a.command("version", "Print the version", func([]string) error {
		return (&output{app: a}).value(struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{buildVersion(), goVersion()}, func(w io.Writer) {
			fmt.Fprintln(w, "modelgate", buildVersion(), goVersion())
		})
	})
}

// buildVersion is the module's version or, built from a checkout, the
// revision.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func goVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.GoVersion
	}
	return "go"
}
