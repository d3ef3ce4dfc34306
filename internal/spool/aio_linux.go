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

// aio syncs files by the kernel's asynchronous I/O, so that a goroutine waits for a
// sync as it does for a socket. A blocking fdatasync holds its P until sysmon
// retakes it, and a thread that has returned from one queues for a P: with few
// processors that takes longer than the disk. With `fsync: always` and 32
// connections on one processor, blocking takes twice the processor time and a third
// of the throughput. The nil aio calls fdatasync. Safe for concurrent use.
//
// See io_submit(2), IOCB_CMD_FDSYNC.
type aio struct {
	mu      sync.Mutex // one file at a time
	context uintptr
	control controlBlock
	signal  *os.File // an eventfd, readable when a sync has ended
	fd      uint32   // of signal
	watcher sync.WaitGroup

	polling sync.Mutex  // held to ask the kernel
	pending atomic.Bool // a sync has begun, and its end has not been seen
	event   ioEvent
	ended   chan struct{} // a token when event tells of an end
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

// newAIO returns nil where the kernel does not offer it.
func newAIO() *aio {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a := &aio{signal: os.NewFile(uintptr(fd), "eventfd"), fd: uint32(fd), ended: make(chan struct{}, 1)}
	conn, err := a.signal.SyscallConn()
	if err == nil && a.signal.SetReadDeadline(time.Time{}) == nil { // it can be waited for
		_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0)
		if errno == 0 {
			a.watcher.Go(func() {
				// The count of the eventfd is not read: each end wakes this goroutine.
				_ = conn.Read(func(uintptr) bool {
					a.polling.Lock()
					a.reap()
					a.polling.Unlock()
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
	if errno := a.submit(f); errno != 0 { // not supported for this file or by this kernel
		return syncData(f)
	}
	<-a.ended
	if a.event.result < 0 {
		return os.NewSyscallError("fdatasync", unix.Errno(-a.event.result))
	}
	return nil
}

// submit begins a sync, or returns why it could not.
func (a *aio) submit(f *os.File) unix.Errno {
	a.control = controlBlock{opcode: commandDataSync, fd: uint32(f.Fd()), flags: flagEventFD, eventFD: a.fd}
	list := [1]*controlBlock{&a.control}
	a.polling.Lock()
	defer a.polling.Unlock()
	_, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&list)))
	a.pending.Store(errno == 0)
	return errno
}

// poll checks whether a sync has ended. The scheduler polls only when nothing else
// is runnable, which is late on a busy processor.
func (a *aio) poll() {
	if a != nil && a.pending.Load() && a.polling.TryLock() {
		a.reap()
		a.polling.Unlock()
	}
}

// reap wakes who waits for the sync if it has ended. The caller holds polling.
func (a *aio) reap() {
	var none unix.Timespec
	for a.pending.Load() {
		n, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, a.context, 0, 1, uintptr(unsafe.Pointer(&a.event)), uintptr(unsafe.Pointer(&none)), 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0: // the result is lost
			a.event.result = -int64(errno)
		case n == 0:
			return
		}
		a.pending.Store(false)
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
