// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// grpcType of a call, whose message is empty.
const grpcType, emptyMessage = "application/grpc", "\x00\x00\x00\x00\x00"

// call sends a call of gRPC, whose answer has trailers.
func (l *load) call(c *http.Client) { l.send(c, http.MethodPost, emptyMessage, grpcType) }

// upgrade opens a WebSocket, sends a word, waits for it to come back, and ends.
func (l *load) upgrade() {
	l.upgrades.Lock()
	defer l.upgrades.Unlock()
	begin := time.Now()
	by, err := l.converse()
	if err != nil {
		l.note("", "WebSocket: "+err.Error(), time.Since(begin))
		return
	}
	l.note(by, "", time.Since(begin))
}

// converse returns the variation that took the WebSocket.
func (l *load) converse() (by string, err error) {
	c, err := (&net.Dialer{Timeout: patience}).DialContext(l.t.Context(), "tcp", l.address)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	host := l.host
	if host == "" {
		host = l.address
	}
	const word = "word"
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", host); err != nil {
		return "", err
	}
	r := bufio.NewReader(c)
	lines, err := head(r)
	if err != nil {
		return "", err
	}
	if lines[0] != "HTTP/1.1 101 Switching Protocols" {
		return "", fmt.Errorf("the answer is %q", lines)
	}
	for _, line := range lines {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "Variation") {
			by = value
		}
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	back := make([]byte, len(word))
	if _, err = io.ReadFull(r, back); err == nil && string(back) != word {
		err = fmt.Errorf("%q comes back for %q", back, word)
	}
	return by, err
}

// answerAs answers requests, calls and upgrades with a name.
func answerAs(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			takeUpgrade(w, name)
			return
		}
		w.Header().Set("Variation", name)
		if r.Header.Get("Content-Type") != grpcType {
			_, _ = io.Copy(io.Discard, r.Body) // what came of it is in the answer
			return
		}
		w.Header().Set("Content-Type", grpcType)
		w.Header().Set("Trailer", "Grpc-Status")
		status := "0"
		if sent, err := io.ReadAll(r.Body); err != nil || string(sent) != emptyMessage {
			status = "2"
		}
		_, _ = io.WriteString(w, emptyMessage) // the trailers tell
		w.Header().Set("Grpc-Status", status)
	}
}

// takeUpgrade sends back what comes after an upgrade, until the client ends.
func takeUpgrade(w http.ResponseWriter, name string) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // the other side has
	_, _ = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nVariation: %s\r\n\r\n", name)
	_, _ = io.Copy(c, buffered)
}
