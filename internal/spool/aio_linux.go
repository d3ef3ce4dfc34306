package spool

import (
	"os"
	"sync"
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
	ended   *os.File // an eventfd, readable when a sync has ended
	conn    interface {
		Read(func(fd uintptr) (done bool)) error
	}
	control controlBlock
	event   ioEvent
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
	a := &aio{ended: os.NewFile(uintptr(fd), "eventfd")}
	a.conn, err = a.ended.SyscallConn()
	if err == nil && a.ended.SetReadDeadline(time.Time{}) == nil { // it can be waited for
		_, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0)
		if errno == 0 {
			return a
		}
	}
	_ = a.ended.Close()
	return nil
}

// syncData makes the content of a file durable. It fails as fdatasync does.
func (a *aio) syncData(f *os.File) error {
	if a == nil {
		return syncData(f)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	submitted := false
	var errno unix.Errno
	err := a.conn.Read(func(event uintptr) bool {
		if !submitted {
			submitted = true
			errno = a.submit(f, event)
			return errno != 0 // else the end of it may have to be waited for
		}
		return a.reap()
	})
	if err != nil {
		return err
	}
	if errno != 0 { // nothing has been synced: the file or the system does not do it this way
		return syncData(f)
	}
	if a.event.result < 0 {
		return os.NewSyscallError("fdatasync", unix.Errno(-a.event.result))
	}
	return nil
}

func (a *aio) submit(f *os.File, event uintptr) unix.Errno {
	a.control = controlBlock{opcode: commandDataSync, fd: uint32(f.Fd()), flags: flagEventFD, eventFD: uint32(event)}
	list := [1]*controlBlock{&a.control}
	_, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&list)))
	return errno
}

// reap takes the sync that has ended, and says whether one has. The count of
// the eventfd is left as it is: each end wakes who waits for it.
func (a *aio) reap() bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, a.context, 0, 1, uintptr(unsafe.Pointer(&a.event)), 0, 0)
		switch errno {
		case 0:
			return n == 1
		case unix.EINTR:
		default: // how it came out cannot be known any more
			a.event.result = -int64(errno)
			return true
		}
	}
}

func (a *aio) close() error {
	if a == nil {
		return nil
	}
	_, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, a.context, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("io_destroy", errno)
	}
	return a.ended.Close()
}
