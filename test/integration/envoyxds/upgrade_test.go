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
	"github.com/plumbline-dev/plumbline/test/harness/backend"
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

// L2: an upgrade and a tunnel pass a proxy as they pass without one.
func TestUpgradesPass(t *testing.T) {
	const upgraded = "HTTP/1.1 101 Switching Protocols"
	tests := map[string]struct{ request, want string }{
		"WebSocket":                         {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", upgraded},
		"SPDY, of kubectl exec":             {"POST /exec HTTP/1.1\r\nHost: a\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n", upgraded},
		"tcp, of the Docker API":            {"POST /attach HTTP/1.1\r\nHost: a\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n", upgraded},
		"a tunnel":                          {"CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n", "HTTP/1.1 200 Connection Established"},
		"TLS, which is served without":      {"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: TLS/1.2\r\nConnection: Upgrade\r\nContent-Length: 4\r\n\r\n", "HTTP/1.1 200 OK"},
		"another one, which is answered so": {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n", "HTTP/1.1 403 Forbidden"},
	}
	envoy.EachVersion(t, func(t *testing.T) {
		plain := web(nil, slot("", endpoint(tunnel(t), ir.Ready)))
		divided := halves([]*backend.Mortal{}, []*backend.Mortal{})
		for i := range divided.Ports[0].Slots {
			divided.Ports[0].Slots[i].Endpoints = []ir.Endpoint{endpoint(tunnel(t), ir.Ready)}
		}
		for _, address := range serve(t, plain, divided) {
			for name, tc := range tests {
				c := dial(t, address)
				_, err := io.WriteString(c, tc.request+"body")
				must(t, err)
				r := bufio.NewReader(c)
				lines, err := head(r)
				must(t, err)
				if lines[0] != tc.want {
					t.Errorf("%s: the answer is %q, want %s", name, lines, tc.want)
					continue
				}
				back := make([]byte, len("body"))
				if _, err := io.ReadFull(r, back); !strings.Contains(tc.want, "403") && (err != nil || string(back) != "body") {
					t.Errorf("%s: after it comes %q: %v", name, back, err)
				}
			}
		}
	})
}
