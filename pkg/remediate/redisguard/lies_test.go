// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// lies are bytes that no Redis answers a script with; what is in one is all that
// comes on a connection.
var lies = map[string]string{
	"nothing":                      "",
	"nothing that is RESP":         "HTTP/1.1 400 Bad Request\r\n\r\n",
	"half an answer":               "*4\r\n$7\r\nrefused\r\n$10\r\nMaxPer",
	"a status":                     "+allowed\r\n",
	"a text":                       "$7\r\nallowed\r\n",
	"a number":                     ":1\r\n",
	"null":                         "$-1\r\n",
	"a null array":                 "*-1\r\n",
	"an empty array":               "*0\r\n",
	"an array of null":             "*1\r\n$-1\r\n",
	"an array of an error":         "*1\r\n-ERR allowed\r\n",
	"an array in an array":         "*1\r\n*1\r\n$7\r\nallowed\r\n",
	"a redirection":                "-MOVED 1 127.0.0.1:1\r\n",
	"loading":                      "-LOADING Redis is loading the dataset in memory\r\n",
	"a script that it has not":     "-NOSCRIPT No matching script.\r\n",
	"an empty error":               "-\r\n",
	"a bulk of a terabyte":         "$1099511627776\r\nx",
	"an array of a billion":        "*1000000000\r\n",
	"the largest array":            "*9223372036854775807\r\n",
	"a negative length":            "$-2\r\n",
	"a push of a later version":    ">2\r\n+message\r\n+x\r\n",
	"a boolean of a later version": "#t\r\n",
	"a word that is none":          "*1\r\n$7\r\ngranted\r\n",
	"a gate that is none":          "*4\r\n$7\r\nrefused\r\n$4\r\nMood\r\n$1\r\n0\r\n$0\r\n\r\n",
	"a gate without its limit":     "*4\r\n$7\r\nrefused\r\n$10\r\nMaxPerHour\r\n$1\r\n1\r\n$0\r\n\r\n",
	"texts of nothing but zeroes":  "*4\r\n$1\r\n\x00\r\n$1\r\n\x00\r\n$1\r\n\x00\r\n$1\r\n\x00\r\n",
}

// liar is a server that answers every command so.
func liar(t *testing.T, lie string) (socket string) {
	t.Helper()
	// The path of a unix socket has at most 107 bytes; t.TempDir() can be longer.
	directory, err := os.MkdirTemp("", "plrg") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	socket = filepath.Join(directory, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { tell(c, lie) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return socket
}

// tell answers commands until the other side goes away.
func tell(c net.Conn, lie string) {
	defer func() { _ = c.Close() }()
	from := bufio.NewReader(c)
	for {
		line, err := from.ReadString('\n')
		words, parseErr := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		if err != nil || parseErr != nil || skip(from, words) != nil {
			return
		}
		if _, err := io.WriteString(c, lie); err != nil {
			return
		}
	}
}

// skip reads past the words of a command.
func skip(from *bufio.Reader, words int) error {
	for range words {
		line, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		length, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "$"))
		if err != nil {
			return err
		}
		if _, err := from.Discard(length + len("\r\n")); err != nil {
			return err
		}
	}
	return nil
}

// Through the real client: no lie is a verdict, none is taken for a copy that was
// put, and none ends the process.
func TestLies(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			client := details.NewClient(details.Config{Address: liar(t, lie)})
			t.Cleanup(func() { _ = client.Close() })
			m := New(client, Config{Prefix: "p"})
			if got := ask(t.Context(), m); got.Verdict != Unknown || got.Reason == "" || got.Err == nil {
				t.Errorf("asked, it says %+v", got)
			}
			s := ledger.Begin(epoch, true)
			if err := m.Put(t.Context(), "production", "uid", &s); err == nil {
				t.Error("it is put")
			}
			if got := m.Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch); got.Verdict != Unknown {
				t.Errorf("consulted, it says %+v", got)
			}
		})
	}
}
