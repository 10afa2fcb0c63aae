// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net"
	"testing"
	"time"
)

func TestOneAnswersWithItsNameFromOutsideOfLoopback(t *testing.T) {
	at := Start(t, "web")
	Answers(t, 10*time.Second, at, "200 web")
	host, _, err := net.SplitHostPort(at)
	if err != nil || net.ParseIP(host).IsLoopback() {
		t.Errorf("it is at %s: %v", at, err)
	}
}

func TestGetSaysWhyThereIsNoAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only its number is wanted
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := Get(t, at); got == "" || got[0] == '2' {
		t.Errorf("nobody listens, and the answer is %q", got)
	}
}
