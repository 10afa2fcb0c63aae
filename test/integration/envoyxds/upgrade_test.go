// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// tunnel is an upstream that takes each upgrade, and each CONNECT, and then sends back
// what it gets. A request without either has its body back.
func tunnel(t *testing.T) string {
	return raw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		lines, err := head(r)
		if err != nil {
			return
		}
		upgrade, length := "", 0
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			switch strings.ToLower(name) {
			case "upgrade":
				upgrade = value
			case "content-length":
				length = len("body")
			}
		}
		switch {
		case strings.HasPrefix(lines[0], "CONNECT db:5432 "):
			_, _ = io.WriteString(c, "HTTP/1.1 200 Connection Established\r\n\r\n")
		case upgrade != "":
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: "+upgrade+"\r\nConnection: Upgrade\r\n\r\n")
		default:
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nSaw: "+lines[0]+"\r\n\r\n")
			_, _ = io.CopyN(c, r, int64(length))
			return
		}
		_, _ = io.Copy(c, r) // until the client ends
	})
}

func TestX(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		address := serve(t, web(nil, slot("", endpoint(tunnel(t), ir.Ready))))[0]
		for _, req := range []string{
			"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\nbody",
			"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\nbody",
			"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: TLS/1.2\r\nConnection: Upgrade\r\nContent-Length: 4\r\n\r\nbody",
			"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: foo\r\nConnection: Upgrade\r\nContent-Length: 4\r\n\r\nbody",
			"CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\nbody",
		} {
			c := dial(t, address)
			_, err := io.WriteString(c, req)
			must(t, err)
			r := bufio.NewReader(c)
			lines, err := head(r)
			back := make([]byte, 4)
			n, err2 := io.ReadFull(r, back)
			t.Log(req[:20], lines, err, string(back[:n]), err2)
		}
	})
}
