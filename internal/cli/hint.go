package cli

import (
	"errors"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"

	"modelgate/internal/store"
)

// hint is what to do about an error that operators meet, "" for others.
func hint(err error) string {
	path, _ := errors.AsType[*fs.PathError](err)
	switch {
	case portTaken(err):
		return "Stop the other program, or choose another address in server.listen."
	case errors.Is(err, store.ErrDamaged):
		return "Stop the service, keep the file aside, and restore a backup. What the spool holds is booked at the next start."
	case errors.Is(err, fs.ErrPermission) && path != nil:
		return "Run it as the user that owns " + path.Path + ", or give this user the right to it."
	case errors.Is(err, fs.ErrPermission):
		return "Run it as the user that owns the files of data_dir."
	}
	return ""
}

// portTaken reports whether another program listens on an address.
func portTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// nextPort is an address with the port after the one of address.
func nextPort(address string) string {
	host, port, err := net.SplitHostPort(address)
	n, notNumber := strconv.Atoi(port)
	if err != nil || notNumber != nil || n >= 65535 {
		return "127.0.0.1:8081"
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}

// program is how a command that is printed names this program.
func (e *Environment) program() string {
	if strings.Contains(e.Program, "/") {
		return quoted(e.Program)
	}
	return "modelgate"
}

// quoted is a word that a shell reads as it is.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
