// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// Lines are the requests that nginx tells on its log's socket.
type Lines struct {
	socket *net.UnixConn
	done   chan struct{}

	mu sync.Mutex
	// counts, unread datagrams, and the beginning of the last request of each sequence.
	counts map[envoyname.Slot]nginx.Counts
	unread uint64
	last   map[decision]time.Time
}

// decision is the split of a port with a sequence.
type decision struct {
	namespace, service string
	port               uint16
	sequence           uint64
}

// Listen takes the place of a socket that is there. Close ends it.
func Listen(path string) (*Lines, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listening to the log of nginx: %w", err)
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listening to the log of nginx: %w", err)
	}
	const buffer = 4 << 20                                                                   // nginx drops a line that finds no place
	if err := errors.Join(socket.SetReadBuffer(buffer), os.Chmod(path, 0o666)); err != nil { //nolint:gosec // workers are another user
		return nil, errors.Join(fmt.Errorf("listening to the log of nginx: %w", err), socket.Close())
	}
	l := &Lines{socket: socket, done: make(chan struct{}), counts: map[envoyname.Slot]nginx.Counts{}, last: map[decision]time.Time{}}
	go l.read()
	return l, nil
}

// Close waits until no line is read any more.
func (l *Lines) Close() error {
	err := l.socket.Close()
	<-l.done
	return err
}

func (l *Lines) read() {
	defer close(l.done)
	datagram := make([]byte, 4096)
	for {
		n, err := l.socket.Read(datagram)
		if err != nil {
			return // it is closed
		}
		line, err := nginx.ParseLine(datagram[:n])
		l.add(line, err)
	}
}

func (l *Lines) add(line nginx.Line, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.unread++
		return
	}
	l.counts[line.Arm] = l.counts[line.Arm].Add(line.Status)
	d := decision{line.Arm.Namespace, line.Arm.Service, line.Arm.Port, line.Sequence}
	if line.Began.After(l.last[d]) {
		l.last[d] = line.Began
	}
}

// Counts of all arms since Listen, and of datagrams that are no line of ours.
func (l *Lines) Counts() (arms map[envoyname.Slot]nginx.Counts, unread uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts), l.unread
}

// decidedByOther is when the last request began that another sequence than that of its port decided. It
// forgets sequences of which no request began since the time before.
func (l *Lines) decidedByOther(sequences map[decision]bool, before time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last time.Time
	for d, began := range l.last {
		switch {
		case sequences[d]:
		case began.Before(before):
			delete(l.last, d)
		case began.After(last):
			last = began
		}
	}
	return last
}
