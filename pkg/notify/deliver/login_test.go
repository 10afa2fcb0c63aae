// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"net/smtp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLogin_SaysNothingWithoutTLS, not even to localhost, where net/smtp would.
func TestLogin_SaysNothingWithoutTLS(t *testing.T) {
	for name, auth := range map[string]smtp.Auth{
		"PLAIN": smtp.PlainAuth("", "user", password, "localhost"),
		"LOGIN": &loginAuth{username: "user", password: password},
	} {
		mechanism, first, err := (&encrypted{auth}).Start(&smtp.ServerInfo{Name: "localhost", Auth: []string{name}})
		if !errors.Is(err, errNotEncrypted) || mechanism != "" || first != nil {
			t.Errorf("%s: %q %q %v", name, mechanism, first, err)
		}
		if mechanism, _, err := (&encrypted{auth}).Start(&smtp.ServerInfo{Name: "localhost", TLS: true}); err != nil || mechanism != name {
			t.Errorf("%s over TLS: %q %v", name, mechanism, err)
		}
	}
}

func TestLogin_AnswersTwoQuestionsAndNoThird(t *testing.T) {
	auth := &loginAuth{username: "user", password: password}
	var said []string
	for range 2 {
		answer, err := auth.Next([]byte("?"), true)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, string(answer))
	}
	if diff := cmp.Diff([]string{"user", password}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if answer, err := auth.Next([]byte("ok"), false); answer != nil || err != nil {
		t.Errorf("after the end: %q %v", answer, err)
	}
	if answer, err := auth.Next([]byte("?"), true); answer != nil || !errors.Is(err, errChallenge) {
		t.Errorf("a third question: %q %v", answer, err)
	}
}
