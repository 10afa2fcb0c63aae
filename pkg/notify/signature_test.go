// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// key of n bytes, as it stands in a Secret.
func key(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, n))
}

func TestParseSigningKeys(t *testing.T) {
	cases := map[string]struct {
		secret string
		want   int // keys; 0 is an error
	}{
		"one key of the least length":         {key(24), 1},
		"one key of the greatest length":      {key(64), 1},
		"two keys while they are changed":     {key(32) + " " + key(24), 2},
		"keys on lines of their own":          {key(32) + "\n" + key(24) + "\n", 2},
		"four keys":                           {strings.Repeat(key(24)+" ", 4), 4},
		"five keys":                           {strings.Repeat(key(24)+" ", 5), 0},
		"nothing":                             {"", 0},
		"white space":                         {" \n", 0},
		"a key that is too short":             {key(23), 0},
		"a key that is too long":              {key(65), 0},
		"no prefix":                           {strings.TrimPrefix(key(32), "whsec_"), 0},
		"the prefix of a private key":         {strings.Replace(key(32), "whsec_", "whsk_", 1), 0},
		"no base64":                           {"whsec_" + strings.Repeat("!", 40), 0},
		"base64 without its padding":          {strings.TrimRight(key(32), "="), 0},
		"one good and one bad key is no good": {key(32) + " whsec_x", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			keys, err := notify.ParseSigningKeys(tc.secret)
			if len(keys) != tc.want || (err == nil) != (tc.want > 0) || err != nil && !errors.Is(err, notify.ErrSigningKey) {
				t.Errorf("%d keys, %v", len(keys), err)
			}
		})
	}
}

// FuzzParseSigningKeys: whatever a Secret holds, keys are of the length that the
// specification asks for, and an error does not repeat it.
func FuzzParseSigningKeys(f *testing.F) {
	f.Add(key(24))
	f.Add(key(32) + " " + key(64))
	f.Add("whsec_\x00 whsec_")
	f.Add("correct horse battery staple")
	f.Fuzz(func(t *testing.T, secret string) {
		keys, err := notify.ParseSigningKeys(secret)
		if err != nil {
			if len(secret) > 12 && strings.Contains(err.Error(), secret) {
				t.Fatalf("the error repeats the secret: %v", err)
			}
			return
		}
		for _, k := range keys {
			if len(k) < 24 || len(k) > 64 {
				t.Fatalf("a key of %d bytes", len(k))
			}
		}
	})
}

// TestSign_PublishedExample is that of the reference implementation's
// documentation: receivers that were written elsewhere verify what we sign.
func TestSign_PublishedExample(t *testing.T) {
	keys, err := notify.ParseSigningKeys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := notify.Sign(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSign_OneSignatureForEachKey(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 24), bytes.Repeat([]byte{2}, 24)
	at := time.Unix(1674087231, 999_999_999)
	both := notify.Sign([][]byte{first, second}, "evt_1", at, []byte("{}"))
	if want := notify.Sign([][]byte{first}, "evt_1", at, []byte("{}")) + " " + notify.Sign([][]byte{second}, "evt_1", at, []byte("{}")); both != want {
		t.Errorf("got %q, want %q", both, want)
	}
}

// TestSign_CoversEverything: another id, time, payload or key, and nothing else
// changed, is another signature.
func TestSign_CoversEverything(t *testing.T) {
	text := rapid.StringMatching(`[0-9.a]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		key, other := text.Draw(t, "key"), text.Draw(t, "other key")
		id, otherID := text.Draw(t, "id"), text.Draw(t, "other id")
		at, otherAt := rapid.Int64Range(0, 99).Draw(t, "time"), rapid.Int64Range(0, 99).Draw(t, "other time")
		payload, otherPayload := text.Draw(t, "payload"), text.Draw(t, "other payload")
		sign := func(key, id string, at int64, payload string) string {
			return notify.Sign([][]byte{[]byte(key)}, id, time.Unix(at, 0), []byte(payload))
		}
		base := sign(key, id, at, payload)
		for what, changed := range map[string]struct {
			signature string
			same      bool
		}{
			"key":     {sign(other, id, at, payload), other == key},
			"id":      {sign(key, otherID, at, payload), otherID == id},
			"time":    {sign(key, id, otherAt, payload), otherAt == at},
			"payload": {sign(key, id, at, otherPayload), otherPayload == payload},
		} {
			if (changed.signature == base) != changed.same {
				t.Fatalf("another %s", what)
			}
		}
	})
}
