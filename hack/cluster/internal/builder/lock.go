// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is how often a waiter asks again. flock(2) cannot wait with a
// deadline, and blocking in it would make ctrl-C ineffective.
const lockRetry = 50 * time.Millisecond

// Lock takes an exclusive advisory lock on the file at path, which it creates,
// and returns the function that releases it and removes the file. When another
// process holds the lock it calls waiting once (if not nil) and then waits until
// ctx is done. The kernel releases the lock of a process that dies.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if file != nil {
			return func() {
				_ = os.Remove(path) // while we hold it: see tryLock
				_ = file.Close()
			}, nil
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("locking %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// tryLock returns nil, nil when somebody else holds the lock. A holder removes
// the file, so after locking it must be the file that still has the name:
// otherwise two processes would hold locks on two files of one name.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	same, err := stillNamed(file, path)
	if err != nil || !same {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func stillNamed(file *os.File, path string) (bool, error) {
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held, err := file.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(named, held), nil
}
