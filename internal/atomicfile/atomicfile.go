// Package atomicfile replaces files in one step, and makes folders that last.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces the content of a file, durably: whatever fails, a reader finds all
// of the old content or all of the new one. The folder must be there.
func Write(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may be what the disk has no room for
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// MakeDir makes a folder and the parents that are missing, each durable with its
// name before the next is made. A folder that is there stays as it is.
func MakeDir(path string, mode os.FileMode) error { return makeDir(path, mode, SyncDir) }

func makeDir(path string, mode os.FileMode, sync func(path string) error) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return &os.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(path)) // a slash at the end is no element
	if err := makeDir(parent, mode, sync); err != nil {
		return err
	}
	// Another process may have made it since, and may not have synced it.
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return sync(parent)
}

// SyncDir makes the names in a folder durable. A file's own sync does not do that
// on every file system: SQLite syncs the folder too, and has an error code for a
// failure of that (https://sqlite.org/rescode.html, SQLITE_IOERR_DIR_FSYNC).
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
