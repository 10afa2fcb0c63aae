// SPDX-License-Identifier: Apache-2.0

package asker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Answer is what a request was answered, as "code body", and when it was all there.
type Answer struct {
	Text string
	At   time.Time
}

// Start one that gets / of an address on one connection that stays open: again when
// the answer is there, and not before pause has gone by since the last time. Each
// answer is told. It goes on until stop is called or the test ends, and fails the test
// when the connection ends before that.
func Start(tb testing.TB, address string, pause time.Duration, told func(Answer)) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := asking(ctx, conn, pause, told); err != nil && ctx.Err() == nil {
			tb.Errorf("asking %s: %v", address, err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		_ = conn.Close() // so that it waits for no answer
		<-done
	})
	tb.Cleanup(stop)
	return stop
}

func asking(ctx context.Context, conn net.Conn, pause time.Duration, told func(Answer)) error {
	request, reader := fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", conn.RemoteAddr()), bufio.NewReader(conn)
	var turns <-chan time.Time
	if pause > 0 {
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		turns = ticker.C
	}
	for ctx.Err() == nil {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		text, err := answer(reader)
		if err != nil {
			return err
		}
		told(Answer{text, time.Now()})
		if turns != nil {
			select {
			case <-turns:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func answer(from *bufio.Reader) (string, error) {
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	return strconv.Itoa(response.StatusCode) + " " + string(body), err
}
