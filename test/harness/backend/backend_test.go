// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
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
	if got := Get(t, freeport.Address(t)); got == "" || got[0] == '2' {
		t.Errorf("nobody listens, and the answer is %q", got)
	}
}
