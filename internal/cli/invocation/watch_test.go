// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestChangedLines(t *testing.T) {
	const before = "OBJECT   STATE    SINCE\ndeployment/web   InSync\ndeployment/cart  Drifted  5m\n\n1 of 2 drifted\n"
	for name, tc := range map[string]struct{ before, now, want string }{
		"the first output is whole":                   {"", before, before},
		"a change of ages and spaces is no change":    {before, "OBJECT  STATE  SINCE\ndeployment/web  InSync\ndeployment/cart  Drifted  2h3m\n\n1 of 2 drifted\n", ""},
		"a row and the summary that differ are shown": {before, "OBJECT   STATE    SINCE\ndeployment/web   Drifted  1s\ndeployment/cart  Drifted  6m\n\n2 of 2 drifted\n", "deployment/web   Drifted  1s\n2 of 2 drifted\n"},
		"a word with a number is no age":              {"web2 InSync\n", "web3 InSync\n", "web3 InSync\n"},
		"a row that is gone shows no line":            {before, "OBJECT   STATE    SINCE\ndeployment/web   InSync\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changedLines(tc.before, tc.now)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// Changes that come together are one look, and the end of the watch is the end of the command.
func TestShowEach_LooksOncePerBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		inv := &Invocation{IOStreams: genericiooptions.IOStreams{Out: &out}}
		changes, ended := make(chan struct{}, 1), make(chan error, 1)
		looks, broken := 0, errors.New("forbidden")
		go func() {
			for range 5 {
				select {
				case changes <- struct{}{}:
				default:
				}
				<-time.After(settleTime / 10)
			}
			<-time.After(ageTime / 2)
			ended <- broken
		}()
		err := inv.showEach(t.Context(), changes, ended, func(to *Invocation) error {
			looks++
			return to.Print(fmt.Sprintf("look %d\n", looks))
		})
		if !errors.Is(err, broken) {
			t.Errorf("the error is %v, want that of the watch", err)
		}
		if want := "look 1\nlook 2\nlook 3\n"; out.String() != want {
			t.Errorf("printed %q, want %q: one look, one of the first change, and one of the others", out.String(), want)
		}
	})
}

func TestShowEach_EndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*ageTime+time.Second)
		defer cancel()
		var out bytes.Buffer
		inv := &Invocation{IOStreams: genericiooptions.IOStreams{Out: &out}}
		looks := 0
		err := inv.showEach(ctx, nil, nil, func(*Invocation) error { looks++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || looks != 4 {
			t.Errorf("%d looks, and %v; want a look at first and each %s", looks, err, ageTime)
		}
	})
}
