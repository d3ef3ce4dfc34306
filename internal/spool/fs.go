package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"modelgate/internal/atomicfile"
)

// FS is the directory a spool lives in. The real one is Dir; tests use a
// simulated disk that loses what was not synced.
type FS interface {
	// Create makes a file of a size whose every byte is allocated and zero,
	// durable with its name.
	Create(name string, size int64) (File, error)
	Open(name string) (File, error)
	List() ([]string, error)
	// Remove deletes a file, durably.
	Remove(name string) error
	// Keep writes a small file, durable with its name.
	Keep(name string, content []byte) error
	Read(name string) ([]byte, error)
	// Lock takes the directory for this process; ErrLocked when another has
	// it. The result releases it.
	Lock() (func() error, error)
}

// File is an open file of an FS. What one goroutine writes, others may read
// and sync meanwhile.
type File interface {
	ReadAt(b []byte, off int64) (int, error)
	WriteAt(b []byte, off int64) (int, error)
	Size() (int64, error)
	// Sync makes everything written durable.
	Sync() error
	Close() error
}

// poller is an FS that learns of the end of a sync from the scheduler, which may
// tell it late where the processor is busy. Poll checks at once.
type poller interface {
	Poll()
}

// ErrLocked says that another process has the spool directory.
var ErrLocked = errors.New("spool: directory is in use by another process")

// Directory is an FS in a directory of the operating system.
type Directory struct {
	name string
	aio  *aio // from Lock to its release
}

// Dir is the directory of a name. Lock makes it if it is not there.
func Dir(name string) *Directory { return &Directory{name: name} }

type osFile struct {
	*os.File
	window *window // of a file that is to be filled; nil writes without one
	aio    *aio
}

// WriteAt implements File.
func (f osFile) WriteAt(b []byte, off int64) (int, error) {
	if f.window == nil {
		return f.File.WriteAt(b, off)
	}
	return f.window.WriteAt(b, off)
}

// Close implements File.
func (f osFile) Close() error {
	if f.window != nil {
		f.window.close()
	}
	return f.File.Close()
}

// Sync implements File.
func (f osFile) Sync() error { return f.aio.syncData(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Create implements FS.
func (d *Directory) Create(name string, size int64) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = allocate(f, size)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = atomicfile.SyncDir(d.name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return osFile{f, &window{file: f}, d.aio}, nil
}

// Open implements FS.
func (d *Directory) Open(name string) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f, nil, d.aio}, nil
}

// List implements FS.
func (d *Directory) List() ([]string, error) {
	entries, err := os.ReadDir(d.name)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Remove implements FS.
func (d *Directory) Remove(name string) error {
	if err := os.Remove(d.path(name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.name)
}

// Keep implements FS.
func (d *Directory) Keep(name string, content []byte) error {
	if err := atomicfile.MakeDir(filepath.Dir(d.path(name)), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(d.path(name), content, 0o600)
}

// Read implements FS.
func (d *Directory) Read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

// Lock implements FS. The directory is made if it is not there.
func (d *Directory) Lock() (func() error, error) {
	if err := atomicfile.MakeDir(d.name, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrLocked, d.name)
		}
		return nil, err
	}
	d.aio = newAIO()
	return func() error { return errors.Join(d.aio.close(), f.Close()) }, nil
}

// Poll implements poller.
func (d *Directory) Poll() { d.aio.poll() }

func (d *Directory) path(name string) string { return filepath.Join(d.name, name) }

// noSpace reports whether an error says that the disk or the quota is full.
func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
