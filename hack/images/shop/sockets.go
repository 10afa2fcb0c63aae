// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/websocket"
)

const (
	socketPath = "/socket"
	// socketOrders is how many orders one WebSocket takes, so that a share of the sockets is one of the orders.
	socketOrders = 10
	// socketIdle is shorter than leaves: a client uses no WebSocket whose end it may not have been told.
	socketIdle = leaves / 3
)

// echo is the answer to an order on a WebSocket.
type echo struct {
	Version string `json:"version"`
	Order   string `json:"order"`
	// Last says that the shop takes no further order on the WebSocket.
	Last bool `json:"last"`
}

// serveSockets answers orders on WebSockets. When ctx is done, the next answer is the last one.
func serveSockets(ctx context.Context, version string) http.Handler {
	return websocket.Server{Handler: func(conn *websocket.Conn) {
		var order string
		for websocket.Message.Receive(conn, &order) == nil {
			if websocket.JSON.Send(conn, echo{version, order, ctx.Err() != nil}) != nil {
				return
			}
		}
	}}
}

// sockets are orders on WebSockets, each of which is kept for some orders.
type sockets struct {
	address string
	config  websocket.Config

	mu     sync.Mutex
	number int
	idle   []*socket // the one that was used last is at the end
}

type socket struct {
	conn *websocket.Conn
	left int // orders
	used time.Time
}

func newSockets(c visitConfig) (*sockets, error) {
	address, host, err := c.target()
	if err != nil {
		return nil, err
	}
	return &sockets{address: address, config: websocket.Config{
		Location: &url.URL{Scheme: "ws", Host: host, Path: socketPath},
		Origin:   &url.URL{Scheme: "http", Host: host}, Version: websocket.ProtocolVersionHybi13,
	}}, nil
}

// send orders on a WebSocket that is idle or on a new one, and returns the version that answers.
func (s *sockets) send(ctx context.Context, _ int) (string, error) {
	conn, order := s.take()
	if conn == nil {
		var err error
		if conn, err = s.dial(ctx); err != nil {
			return "", err
		}
	}
	answer, err := conn.ask(order)
	if conn.left--; err != nil || answer.Last || conn.left == 0 {
		_ = conn.conn.Close() // the order has its answer, or has failed
		return answer.Version, err
	}
	s.keep(conn)
	return answer.Version, nil
}

// take the WebSocket that was used last, if it was not idle for too long, and number the order.
func (s *sockets) take() (found *socket, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	for len(s.idle) > 0 && found == nil {
		last := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		if time.Since(last.used) < socketIdle {
			found = last
		} else {
			_ = last.conn.Close() // no order is on it
		}
	}
	return found, fmt.Sprint("thing ", s.number)
}

func (s *sockets) keep(conn *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn.used = time.Now()
	s.idle = append(s.idle, conn)
}

func (s *sockets) dial(ctx context.Context) (*socket, error) {
	conn, err := (&net.Dialer{Timeout: visitTimeout}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(visitTimeout)); err != nil {
		_ = conn.Close() // nothing was said on it
		return nil, err
	}
	config := s.config
	upgraded, err := websocket.NewClient(&config, conn)
	if err != nil {
		_ = conn.Close() // it is no WebSocket
		return nil, fmt.Errorf("upgrading: %w", err)
	}
	return &socket{conn: upgraded, left: socketOrders}, nil
}

// ask waits for the answer to one order.
func (s *socket) ask(order string) (answer echo, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(visitTimeout)); err != nil {
		return echo{}, err
	}
	if err := websocket.Message.Send(s.conn, order); err != nil {
		return echo{}, fmt.Errorf("ordering: %w", err)
	}
	if err := websocket.JSON.Receive(s.conn, &answer); err != nil {
		return echo{}, fmt.Errorf("waiting for the answer: %w", err)
	}
	if answer.Order != order {
		return echo{}, fmt.Errorf("the answer is for %q, want %q", answer.Order, order)
	}
	return answer, nil
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.idle {
		_ = conn.conn.Close() // no order is on it
	}
	s.idle = nil
}
