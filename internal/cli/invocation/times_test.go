// SPDX-License-Identifier: Apache-2.0

package invocation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

func TestUntilWords_TellsTimesThatHavePassed(t *testing.T) {
	a := &invocation.Invocation{Now: func() time.Time { return clitest.Now }}
	if got := a.FormatUntil(metav1.NewTime(clitest.Now)); got != "until 2026-03-01T12:00:00Z" {
		t.Errorf("got %q", got)
	}
	if got := a.FormatUntil(clitest.Before(-90 * time.Minute)); got != "until 2026-03-01T13:30:00Z, in 90m" {
		t.Errorf("got %q", got)
	}
}
