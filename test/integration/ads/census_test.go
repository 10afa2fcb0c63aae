// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tens of thousands of visitors are asked with as little as a request needs, since it
// is the proxy that is to be seen at work.

// terse is an upstream that answers with its name in a header, and without a body.
func terse(t testing.TB, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }() // the other side has gone
				reader, answer := bufio.NewReader(c), []byte("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nvariation: "+name+"\r\n\r\n")
				for {
					if _, err := head(reader); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// head reads the lines up to an empty one.
func head(r *bufio.Reader) (lines []string, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return lines, err
		}
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
}

// reply is what a visitor sees of an answer.
type reply struct {
	status, variation, cookie string
}

// line is a connection of some visitors, one after the other.
type line struct {
	net.Conn
	reader *bufio.Reader
}

func dialLine(t testing.TB, address string) line {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(5 * patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only read until here
	return line{c, bufio.NewReader(c)}
}

// asks for each of some header lines, all of which go out before an answer is read.
func (l line) asks(headers []string) ([]reply, error) {
	var requests strings.Builder
	for _, h := range headers {
		requests.WriteString("GET / HTTP/1.1\r\nhost: web\r\n")
		if h != "" {
			requests.WriteString(h + "\r\n")
		}
		requests.WriteString("\r\n")
	}
	if _, err := io.WriteString(l, requests.String()); err != nil {
		return nil, err
	}
	replies := make([]reply, 0, len(headers))
	for range headers {
		r, err := l.reply()
		if err != nil {
			return replies, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

func (l line) reply() (r reply, err error) {
	lines, err := head(l.reader)
	if err != nil {
		return r, err
	}
	r.status = strings.TrimPrefix(lines[0], "HTTP/1.1 ")
	var length int64
	for _, h := range lines[1:] {
		name, value, _ := strings.Cut(h, ": ")
		switch strings.ToLower(name) {
		case "variation":
			r.variation = value
		case "set-cookie":
			r.cookie, _, _ = strings.Cut(value, ";")
		case "content-length":
			_, err = fmt.Sscan(value, &length)
		}
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, l.reader, length)
	}
	return r, err
}

// The visitors are asked over so many connections, so many of them at once on each.
const connections, together = 16, 50

// census asks once for each visitor, over connections that were let in. Every answer
// must be a 200.
func census(t testing.TB, address string, headers []string, ready func(line) error) []reply {
	t.Helper()
	replies := make([]reply, len(headers))
	failed := make([]error, connections)
	var done sync.WaitGroup
	for c := range connections {
		own := dialLine(t, address)
		done.Go(func() {
			failed[c] = ready(own)
			for at := c * together; at < len(headers) && failed[c] == nil; at += connections * together {
				end := min(at+together, len(headers))
				var some []reply
				some, failed[c] = own.asks(headers[at:end])
				copy(replies[at:end], some)
			}
			_ = own.Close() // all of it was read
		})
	}
	done.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range replies {
		if r.status != "200 OK" {
			t.Fatalf("visitor %d with %q gets %+v", i, headers[i], r)
		}
	}
	return replies
}

// unlikely is how rare a share may be: ten of them together are as they should be in
// 99.99 % of all runs.
const unlikely = 1e-5

// drawn says that so many of some are what chance makes of a share.
func drawn(t testing.TB, what string, got, of int, share float64) {
	t.Helper()
	p := tail(got, of, share)
	t.Logf("%s: %d of %d, want %.0f; one this far out has a probability of %.2g", what, got, of, float64(of)*share, p)
	if p < unlikely {
		t.Errorf("%s: %d of %d is not what chance makes of %.0f", what, got, of, float64(of)*share)
	}
}

// tail is the probability that a binomial number is at least as far on that side of
// its mean.
func tail(got, of int, share float64) float64 {
	if share == 0 || share == 1 {
		if float64(got) == share*float64(of) {
			return 1
		}
		return 0
	}
	n := float64(of)
	all, _ := math.Lgamma(n + 1)
	probability := func(k float64) float64 {
		one, _ := math.Lgamma(k + 1)
		other, _ := math.Lgamma(n - k + 1)
		return math.Exp(all - one - other + k*math.Log(share) + (n-k)*math.Log1p(-share))
	}
	sum := 0.0
	if k := float64(got); k < n*share {
		for ; k >= 0; k-- {
			sum += probability(k)
		}
		return sum
	}
	for k := float64(got); k <= n; k++ {
		sum += probability(k)
	}
	return sum
}
