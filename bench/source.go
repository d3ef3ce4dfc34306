package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// program is a product that is ready to run.
type program struct {
	path        string
	args        []string // before all others
	environment []string // beside the usual variables
	version     string
}

// source is where a product comes from.
type source interface {
	// fetch puts a version into an empty folder.
	fetch(dir, version string) error
	// program is what fetch put there.
	program(dir, version string) (program, error)
}

// runIn runs a command in a folder, with more variables in its environment. Its
// error says what the command complained about.
func runIn(dir string, environment []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		text := strings.Join(strings.Fields(complaint.String()), " ")
		return out, fmt.Errorf("%s %s: %w: %s", name, args[0], err, text[max(0, len(text)-300):])
	}
	return out, nil
}

// debianPackage is a program that is installed, or else one from Debian's
// packages, which are unpacked and not installed: nothing is started or changed
// on the system. Its version is the one that the system has.
type debianPackage struct {
	command  string
	packages []string // the program's own first, then libraries that few systems have
}

// goModule is a command of a module from Go's module proxy.
type goModule struct {
	path, command string
	// stub is a file that the command embeds and the module does not have,
	// because its makers build it first: their pages. It stays empty.
	stub string
}

func (m goModule) fetch(dir, version string) error {
	out, err := runIn(dir, []string{"GOFLAGS=-mod=mod"}, "go", "mod", "download", "-json", m.path+"@"+version)
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); err == nil || jsonErr == nil && got.Error != "" {
		err = jsonErr
		if got.Error != "" {
			err = errors.New(strings.Join(strings.Fields(got.Error), " "))
		}
	}
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(got.Dir)); err != nil {
		return err
	}
	if m.stub != "" {
		file := filepath.Join(source, m.stub)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			return err
		}
	}
	_, err = runIn(source, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "program"), "./"+m.command)
	return err
}

func (m goModule) program(dir, version string) (program, error) {
	return program{path: filepath.Join(dir, "program"), version: version}, nil
}

// npmPackage is a script of a package from npm's registry, run by Node.js.
type npmPackage struct {
	name, script string
	overrides    map[string]string // versions of what it depends on
}

func (n npmPackage) fetch(dir, version string) error {
	manifest, err := json.Marshal(map[string]any{"private": true, "dependencies": map[string]string{n.name: version}, "overrides": n.overrides})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644); err != nil {
		return err
	}
	_, err = runIn(dir, nil, "npm", "install", "--no-audit", "--no-fund", "--omit=dev", "--ignore-scripts")
	return err
}

func (n npmPackage) program(dir, version string) (program, error) {
	node, err := exec.LookPath("node")
	return program{path: node, args: []string{filepath.Join(dir, "node_modules", n.name, n.script)}, version: version}, err
}

// pythonPackage is a program of a package from Python's index.
type pythonPackage struct{ name, command string }

func (p pythonPackage) fetch(dir, version string) error {
	if _, err := runIn(dir, nil, "python3", "-m", "venv", "."); err != nil {
		return err
	}
	_, err := runIn(dir, nil, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--retries", "0", "--disable-pip-version-check", p.name+"=="+version)
	return err
}

// program is called through Python, because the script in the environment's
// folder names the one it was made in.
func (p pythonPackage) program(dir, version string) (program, error) {
	return program{path: filepath.Join(dir, "bin", "python3"), args: []string{filepath.Join(dir, "bin", p.command)}, version: version}, nil
}

// numbers finds a version in what a program says of itself.
var numbers = regexp.MustCompile(`\d+\.\d+\.\d+`)

func (d debianPackage) fetch(dir, _ string) error {
	if _, err := exec.LookPath(d.command); err == nil {
		return nil
	}
	if _, err := runIn(dir, nil, "apt-get", append([]string{"download"}, d.packages...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	for _, file := range files {
		_, unpackErr := runIn(dir, nil, "dpkg", "-x", file, "root")
		err = errors.Join(err, unpackErr, os.Remove(file))
	}
	return err
}

func (d debianPackage) program(dir, _ string) (program, error) {
	path := filepath.Join(dir, "root", "usr", "sbin", d.command)
	libraries, err := filepath.Glob(filepath.Join(dir, "root", "usr", "lib", "*-linux-gnu*"))
	if err != nil {
		return program{}, err
	}
	ready := program{path: path}
	if len(libraries) > 0 {
		ready.environment = []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	}
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(d.command); err != nil {
			return program{}, err
		}
		ready = program{path: path}
	}
	cmd := ready.command([]string{"-v"})
	said, err := cmd.CombinedOutput()
	if err != nil {
		return program{}, fmt.Errorf("%s -v: %w: %s", d.command, err, said)
	}
	ready.version = string(numbers.Find(said))
	return ready, nil
}
