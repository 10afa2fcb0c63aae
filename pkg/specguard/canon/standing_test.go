// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestStandings(t *testing.T) {
	digest := func(prefix, digit string) string { return prefix + strings.Repeat(digit, 64) }
	const pl1, ddem, key1, key2 = "pl1:sha256:", "sha256:", "pl1c:hmac-sha256:0123456789abcdef:", "pl1c:hmac-sha256:fedcba9876543210:"
	a, b, c := digest(pl1, "a"), digest(pl1, "b"), digest(pl1, "c")
	for name, tc := range map[string]struct {
		before, after, now string
		want               canon.Standing
	}{
		"as the change left it":                    {a, b, b, canon.StandingHolds},
		"as the change left it, before unknown":    {"", b, b, canon.StandingHolds},
		"as the change left it, before of another": {digest(ddem, "b"), b, b, canon.StandingHolds},
		"a restart":                   {a, a, a, canon.StandingUntouched},
		"as before":                   {a, b, a, canon.StandingReverted},
		"neither":                     {a, b, c, canon.StandingChanged},
		"a restart, then a change":    {a, a, c, canon.StandingChanged},
		"not as left, before unknown": {"", b, c, canon.StandingChanged},
		"now unknown":                 {a, b, "", canon.StandingUnknown},
		"after unknown":               {a, "", a, canon.StandingUnknown},
		"all unknown":                 {"", "", "", canon.StandingUnknown},
		"no digest, three times":      {"x", "x", "x", canon.StandingUnknown},
		"a digest cut short":          {a, b, b[:len(b)-1], canon.StandingUnknown},
		"now of another algorithm":    {a, b, digest(ddem, "b"), canon.StandingUnknown},
		"after of another algorithm":  {a, digest(ddem, "a"), a, canon.StandingUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := canon.Compare(canon.Hash(tc.before), canon.Hash(tc.after), canon.Hash(tc.now)); got != tc.want {
				t.Errorf("standing is %v, want %v", got, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		before, after, now string
		want               canon.Standing
	}{
		"closures as the change left it":   {digest(key1, "a"), digest(key1, "b"), digest(key1, "b"), canon.StandingHolds},
		"closures as before":               {digest(key1, "a"), digest(key1, "b"), digest(key1, "a"), canon.StandingReverted},
		"now under another key":            {digest(key1, "a"), digest(key1, "b"), digest(key2, "b"), canon.StandingUnknown},
		"before under another key":         {digest(key2, "c"), digest(key1, "b"), digest(key1, "c"), canon.StandingChanged},
		"a hash where a closure is wanted": {a, a, a, canon.StandingUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := canon.Compare(canon.ClosureDigest(tc.before), canon.ClosureDigest(tc.after), canon.ClosureDigest(tc.now)); got != tc.want {
				t.Errorf("standing is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStandingsHaveNames(t *testing.T) {
	for standing, want := range map[canon.Standing]string{
		canon.StandingUnknown: "unknown", canon.StandingHolds: "holds", canon.StandingUntouched: "untouched",
		canon.StandingReverted: "reverted", canon.StandingChanged: "changed",
	} {
		if got := standing.String(); got != want {
			t.Errorf("name is %q, want %q", got, want)
		}
	}
}

func TestParseClosureDigest(t *testing.T) {
	id, digest := strings.Repeat("0f", 8), strings.Repeat("a9", 32)
	for name, tc := range map[string]struct {
		text  string
		valid bool
	}{
		"a digest":              {"pl1c:hmac-sha256:" + id + ":" + digest, true},
		"nothing":               {"", false},
		"a hash":                {"pl1:sha256:" + digest, false},
		"upper case":            {"pl1c:hmac-sha256:" + id + ":" + strings.ToUpper(digest), false},
		"no key id":             {"pl1c:hmac-sha256:" + digest, false},
		"a short key id":        {"pl1c:hmac-sha256:" + id[1:] + ":" + digest, false},
		"a short digest":        {"pl1c:hmac-sha256:" + id + ":" + digest[1:], false},
		"something after it":    {"pl1c:hmac-sha256:" + id + ":" + digest + ":", false},
		"an id of other digits": {"pl1c:hmac-sha256:" + strings.Repeat("x", 16) + ":" + digest, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canon.ParseClosureDigest(tc.text)
			if (err == nil) != tc.valid || tc.valid && string(got) != tc.text {
				t.Errorf("read %q with error %v, want valid: %v", got, err, tc.valid)
			}
		})
	}
}
