// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// The signature of each token was checked twice: once for the stream of routes, and once for that of counts.
func TestTheSignatureOfATokenIsCheckedOnce(t *testing.T) {
	checks := 0
	said := func(err error) *claimed {
		return &claimed{key: "k1", verify: func(any) error { checks++; return err }}
	}
	set := newKeyset("issuer", map[string]jose.JSONWebKey{"k1": {}})
	for _, step := range []struct {
		token   string
		said    *claimed
		want    bool
		checked int
	}{
		{"good", said(nil), true, 1},
		{"good", said(nil), true, 1},
		{"other", said(nil), true, 2},
		{"bad", said(errors.New("another key")), false, 3},
		{"bad", said(errors.New("another key")), false, 4},
	} {
		if got := set.proves(step.token, step.said); got != step.want || checks != step.checked {
			t.Errorf("%s: %t after %d checks, want %t after %d", step.token, got, checks, step.want, step.checked)
		}
	}
	if set = newKeyset("issuer", set.keys); !set.proves("good", said(nil)) || checks != 5 {
		t.Errorf("after the next answer there were %d checks, want 5", checks)
	}
}

func TestTokensThatWereProvenAreBounded(t *testing.T) {
	set := newKeyset("issuer", nil)
	for i := range provenTokens + 1 {
		set.proves(fmt.Sprint(i), &claimed{verify: func(any) error { return nil }})
	}
	if n := set.proven.Len(); n != provenTokens {
		t.Errorf("%d tokens are kept, want %d", n, provenTokens)
	}
}
