package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

const sector = 512

var errPower = errors.New("disk: power is off")

// disk is an FS in memory that forgets on a power cut what was not synced:
// each unsynced sector comes back, on its own, as any of the states it has
// been in since it was last durable. Names are durable at once, as FS asks.
type disk struct {
	mu    sync.Mutex
	rng   *rand.Rand
	files map[string]*inode
	held  bool
	// left is how many more operations succeed before the power goes;
	// negative for ever.
	left int
	off  bool
	// life counts power cuts, so that handles of an earlier life are dead.
	life int
	// fail, when set, is asked before every operation.
	fail func(op, name string) error
}

type inode struct {
	now []byte
	// past holds, for each sector written since the last sync, its durable
	// state and the ones it has been in since.
	past map[int][][]byte
}

type diskFile struct {
	disk *disk
	node *inode
	name string
	life int
}

func newDisk(seed uint64) *disk {
	return &disk{rng: rand.New(rand.NewPCG(seed, 1)), files: map[string]*inode{}, left: -1}
}

// clone is another disk with the same files, all durable.
func (d *disk) clone(seed uint64) *disk {
	c := newDisk(seed)
	for name, node := range d.files {
		c.files[name] = &inode{now: bytes.Clone(node.now), past: map[int][][]byte{}}
	}
	return c
}

// step lets an operation happen, or says why not. cut reports that the power
// goes in the middle of it. The lock is held.
func (d *disk) step(op, name string) (cut bool, err error) {
	if d.off {
		return false, errPower
	}
	if d.fail != nil {
		if err := d.fail(op, name); err != nil {
			return false, err
		}
	}
	if d.left == 0 {
		d.off = true
		return true, nil
	}
	d.left--
	return false, nil
}

// powerCut loses what was not synced and brings the disk back.
func (d *disk) powerCut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.files)) { // a seed is to mean one history
		node := d.files[name]
		for _, i := range slices.Sorted(maps.Keys(node.past)) {
			states := append(node.past[i], append([]byte(nil), node.sector(i)...))
			copy(node.sector(i), states[d.rng.IntN(len(states))])
		}
		node.past = map[int][][]byte{}
	}
	d.off, d.left, d.held = false, -1, false
	d.life++
}

func (n *inode) sector(i int) []byte { return n.now[i*sector : min((i+1)*sector, len(n.now))] }

func (n *inode) write(b []byte, off int64) {
	for len(b) > 0 {
		i := int(off) / sector
		within := int(off) % sector
		size := min(sector-within, len(b))
		n.past[i] = append(n.past[i], append([]byte(nil), n.sector(i)...))
		copy(n.sector(i)[within:], b[:size])
		b, off = b[size:], off+int64(size)
	}
}

func (d *disk) Create(name string, size int64) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.files[name]; there {
		return nil, fs.ErrExist
	}
	cut, err := d.step("create", name)
	if err != nil {
		return nil, err
	}
	node := &inode{now: make([]byte, size), past: map[int][][]byte{}}
	if !cut || d.rng.IntN(2) == 0 {
		d.files[name] = node
	}
	if cut {
		return nil, errPower
	}
	return &diskFile{d, node, name, d.life}, nil
}

func (d *disk) Open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node, there := d.files[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return &diskFile{d, node, name, d.life}, nil
}

func (d *disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.files {
		names = append(names, name)
	}
	return names, nil
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, err := d.step("remove", name)
	if err != nil {
		return err
	}
	if !cut || d.rng.IntN(2) == 0 {
		delete(d.files, name)
	}
	if cut {
		return errPower
	}
	return nil
}

func (d *disk) Keep(name string, content []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, err := d.step("keep", name)
	if err != nil {
		return err
	}
	if !cut || d.rng.IntN(2) == 0 {
		d.files[name] = &inode{now: append([]byte(nil), content...), past: map[int][][]byte{}}
	}
	if cut {
		return errPower
	}
	return nil
}

func (d *disk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail("read", name); err != nil {
			return nil, err
		}
	}
	node, there := d.files[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return append([]byte(nil), node.now...), nil
}

func (d *disk) Lock() (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held {
		return nil, ErrLocked
	}
	d.held = true
	life := d.life
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.life == life {
			d.held = false
		}
		return nil
	}, nil
}

// gone says that a handle belongs to an earlier life. The disk's lock is held.
func (f *diskFile) gone() bool { return f.life != f.disk.life }

func (f *diskFile) ReadAt(b []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.gone() {
		return 0, errPower
	}
	if f.disk.fail != nil {
		if err := f.disk.fail("readat", f.name); err != nil {
			return 0, err
		}
	}
	if off >= int64(len(f.node.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.now[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.gone() {
		return 0, errPower
	}
	cut, err := f.disk.step("write", f.name)
	var partial partialWrite
	if errors.As(err, &partial) {
		n := min(partial.bytes, len(b))
		f.node.write(b[:n], off)
		return n, err
	}
	if err != nil {
		return 0, err
	}
	if off+int64(len(b)) > int64(len(f.node.now)) {
		return 0, fmt.Errorf("disk: write past what is allocated of %s", f.name)
	}
	if cut {
		f.node.write(b[:f.disk.rng.IntN(len(b)+1)], off)
		return 0, errPower
	}
	f.node.write(b, off)
	return len(b), nil
}

// partialWrite as the fault of a write lets its first bytes through.
type partialWrite struct {
	bytes int
	err   error
}

func (p partialWrite) Error() string { return p.err.Error() }
func (p partialWrite) Unwrap() error { return p.err }

func (f *diskFile) Size() (int64, error) { return int64(len(f.node.now)), nil }

func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.gone() {
		return errPower
	}
	cut, err := f.disk.step("sync", f.name)
	if err != nil {
		return err
	}
	if cut {
		return errPower
	}
	f.node.past = map[int][][]byte{}
	return nil
}

func (f *diskFile) Close() error { return nil }
