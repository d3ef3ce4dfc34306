package spool

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aio has the system sync files while the goroutine waits as it does for a
// socket. In a thread of its own, an fdatasync takes the processor it ran on
// out of the scheduler's hands until that notices, and one that has returned
// queues for a processor: with few processors that takes longer than the disk.
// Nil syncs in the thread of who asks. It is safe for concurrent use.
//
// See io_submit(2), IOCB_CMD_FDSYNC.
type aio struct {
	mu      sync.Mutex // one file at a time
	context uintptr
	control controlBlock
	signal  *os.File // an eventfd, readable when a sync has ended
	number  uint32   // of it
	watcher sync.WaitGroup

	turn   sync.Mutex  // to ask the system
	flying atomic.Bool // a sync has begun, and nobody knows of its end
	event  ioEvent
	ended  chan struct{} // a token when event tells of an end
}

// controlBlock is struct iocb of linux/aio_abi.h.
type controlBlock struct {
	_       [2]uint64 // data, key, flags of a reading or writing
	opcode  uint16
	_       int16 // priority
	fd      uint32
	_       [4]uint64 // buffer, bytes, offset; reserved
	flags   uint32
	eventFD uint32
}

const (
	commandDataSync = 3 // IOCB_CMD_FDSYNC, since Linux 4.18
	flagEventFD     = 1 // IOCB_FLAG_RESFD
)

// ioEvent is struct io_event of linux/aio_abi.h.
type ioEvent struct {
	_         [2]uint64 // data, control block
	result, _ int64
}

// newAIO returns nil where the system does not offer it.
func newAIO() *aio {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a := &aio{signal: os.NewFile(uintptr(fd), "eventfd"), number: uint32(fd), ended: make(chan struct{}, 1)}
	conn, err := a.signal.SyscallConn()
	if err == nil && a.signal.SetReadDeadline(time.Time{}) == nil { // it can be waited for
		_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0)
		if errno == 0 {
			a.watcher.Go(func() {
				// The count of the eventfd is left as it is: each end wakes this.
				_ = conn.Read(func(uintptr) bool {
					a.turn.Lock()
					a.reap()
					a.turn.Unlock()
					return false
				})
			})
			return a
		}
	}
	_ = a.signal.Close()
	return nil
}

// syncData makes the content of a file durable. It fails as fdatasync does.
func (a *aio) syncData(f *os.File) error {
	if a == nil {
		return syncData(f)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errno := a.submit(f); errno != 0 { // the file or the system does not do it this way
		return syncData(f)
	}
	<-a.ended
	if a.event.result < 0 {
		return os.NewSyscallError("fdatasync", unix.Errno(-a.event.result))
	}
	return nil
}

// submit begins a sync, or returns why there is none.
func (a *aio) submit(f *os.File) unix.Errno {
	a.control = controlBlock{opcode: commandDataSync, fd: uint32(f.Fd()), flags: flagEventFD, eventFD: a.number}
	list := [1]*controlBlock{&a.control}
	a.turn.Lock()
	defer a.turn.Unlock()
	_, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&list)))
	a.flying.Store(errno == 0)
	return errno
}

// look sees whether a sync has ended. The scheduler does so only when it has
// nothing else to run, which on a busy processor is late.
func (a *aio) look() {
	if a != nil && a.flying.Load() && a.turn.TryLock() {
		a.reap()
		a.turn.Unlock()
	}
}

// reap takes the sync that has ended, if one has, and wakes who waits for it.
// The turn is held.
func (a *aio) reap() {
	var none unix.Timespec
	for a.flying.Load() {
		n, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, a.context, 0, 1, uintptr(unsafe.Pointer(&a.event)), uintptr(unsafe.Pointer(&none)), 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0: // how it came out cannot be known any more
			a.event.result = -int64(errno)
		case n == 0:
			return
		}
		a.flying.Store(false)
		a.ended <- struct{}{}
	}
}

func (a *aio) close() error {
	if a == nil {
		return nil
	}
	_, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, a.context, 0, 0)
	err := a.signal.Close()
	a.watcher.Wait()
	if errno != 0 {
		return errors.Join(os.NewSyscallError("io_destroy", errno), err)
	}
	return err
}
