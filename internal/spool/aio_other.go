//go:build !linux

package spool

import "os"

// aio syncs in the thread of who asks, where the system knows no other way.
type aio struct{}

func newAIO() *aio { return nil }

func (*aio) syncData(f *os.File) error { return syncData(f) }

func (*aio) poll() {}

func (*aio) close() error { return nil }
