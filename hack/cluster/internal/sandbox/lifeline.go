// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lifelineDescriptor is the file descriptor on which the first process sees the end of
// its owner, if there is one: the descriptor after [eventsDescriptor].
const lifelineDescriptor = eventsDescriptor + 1

// openLifeline opens a process descriptor of an owner. The kernel hands the descriptor to
// the first process, which could not open one from inside its pid namespace.
func openLifeline(owner int) (*os.File, error) {
	descriptor, err := unix.PidfdOpen(owner, 0)
	if err != nil {
		return nil, fmt.Errorf("opening process %d, with which the cluster is to end: %w", owner, err)
	}
	return os.NewFile(uintptr(descriptor), "lifeline"), nil
}

// awaitOwner returns when the owner has ended, of which there must be one.
func awaitOwner() error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: lifelineDescriptor, Events: unix.POLLIN}}, -1)
		if err == nil {
			return errors.New("the process with which this cluster was to end has ended")
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the owner to end: %w", err)
		}
	}
}
