// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// Lines are the requests that nginx tells by its log.
type Lines struct {
	socket *net.UDPConn
	done   chan struct{}

	mu sync.Mutex
	// counts, unread datagrams, and the beginning of the last request of each sequence.
	counts map[envoyname.Slot]nginx.Counts
	unread uint64
	last   map[decision]time.Time
	// backups tell which requests have failed over.
	backups nginx.Backups
}

// decision is the split of a port with a sequence.
type decision struct {
	namespace, service string
	port               uint16
	sequence           uint64
}

// Listen to the lines at an address. A socket of the file system would be the other choice: the kernel keeps ten lines
// there, and nginx drops the next one. Close ends it.
func Listen(address netip.AddrPort) (*Lines, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, fmt.Errorf("listening to the log of nginx: %w", err)
	}
	const buffer = 4 << 20 // the kernel gives as much as it allows, and drops a line without room
	if err := socket.SetReadBuffer(buffer); err != nil {
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
	const longest = 64 << 10
	datagram := make([]byte, longest)
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
	l.counts[line.Arm] = l.counts[line.Arm].Add(line.Status, l.backups[line.Arm][line.Endpoint])
	d := decision{line.Arm.Namespace, line.Arm.Service, line.Arm.Port, line.Sequence}
	if line.Began.After(l.last[d]) {
		l.last[d] = line.Began
	}
}

// setBackups replaces the backups by those of the ports to come.
func (l *Lines) setBackups(b nginx.Backups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backups = b
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
