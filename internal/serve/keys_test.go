// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

// keyLine is a key of one byte again and again.
func keyLine(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) + "\n"
}

// sealedBy returns a request with a session that keys have sealed.
func sealedBy(t *testing.T, keys *session.Keys) *http.Request {
	t.Helper()
	w := httptest.NewRecorder()
	if err := session.Write(w, keys, session.Caller, time.Now().Add(time.Hour), "token"); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 {
			r.AddCookie(c)
		}
	}
	return r
}

func opensSession(keys *session.Keys, r *http.Request) bool {
	_, found := session.Read[string](r, keys, session.Caller, time.Now())
	return found
}

// fileOf is a file of keys that a test changes, and the keys that follow the file.
type fileOf struct {
	*keyFile
	t   *testing.T
	log bytes.Buffer
}

// withKeyFile runs a test with a file that has the key 1.
func withKeyFile(t *testing.T, test func(t *testing.T, f *fileOf)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	synctest.Test(t, func(t *testing.T) {
		f := &fileOf{t: t, keyFile: &keyFile{path: path}}
		f.put(keyLine(1))
		var err error
		if f.keyFile, err = openKeyFile(path); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { f.followFile(ctx, clock.RealClock{}, slog.New(slog.NewJSONHandler(&f.log, nil))) })
		test(t, f)
		stop()
		following.Wait()
	})
}

// put writes the file, and waits until it was read.
func (f *fileOf) put(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	<-time.After(rereadEvery + time.Second)
	synctest.Wait()
}

func keysOf(t *testing.T, lines ...string) *session.Keys {
	t.Helper()
	keys, err := session.ParseKeys([]byte(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestKeysFollowTheirFile(t *testing.T) {
	withKeyFile(t, func(t *testing.T, f *fileOf) {
		old := sealedBy(t, f.keys)
		f.put(keyLine(2) + keyLine(1))
		if fresh := sealedBy(t, f.keys); !opensSession(keysOf(t, keyLine(2)), fresh) || opensSession(keysOf(t, keyLine(1)), fresh) {
			t.Error("the first key of the file does not seal")
		}
		if !opensSession(f.keys, old) {
			t.Error("a session of the older key is closed while the file has the key")
		}
		f.put(keyLine(2))
		if opensSession(f.keys, old) {
			t.Error("a key that was removed still opens")
		}
		if got := strings.Count(f.log.String(), "api.session.keys.replaced"); got != 2 {
			t.Errorf("two changes are logged as %s", f.log.String())
		}
	})
}

func TestAFileOfKeysWithAFaultKeepsTheKeysOfBefore(t *testing.T) {
	for name, text := range map[string]string{"a short key": "c2hvcnQ=", "an empty file": "", "a good key before a word": keyLine(3) + "word"} {
		t.Run(name, func(t *testing.T) {
			withKeyFile(t, func(t *testing.T, f *fileOf) {
				old := sealedBy(t, f.keys)
				f.put(text)
				f.put(text)
				if !opensSession(f.keys, old) || !opensSession(keysOf(t, keyLine(1)), sealedBy(t, f.keys)) {
					t.Error("the keys of before are gone")
				}
				if got := strings.Count(f.log.String(), "api.session.keys.failed"); got != 1 || strings.Contains(f.log.String(), "c2hv") {
					t.Errorf("the fault is logged as %s", f.log.String())
				}
				f.put(keyLine(2) + keyLine(1))
				if !opensSession(keysOf(t, keyLine(2)), sealedBy(t, f.keys)) {
					t.Error("a file without a fault is not read again")
				}
			})
		})
	}
}
