// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// attacker reaches the port as any pod could, from an address of its own.
type attacker struct {
	address string // loopback
	to      string
}

func newAttacker(t testing.TB, address string) attacker {
	t.Helper()
	return attacker{address, "127.0.0.1:" + strconv.Itoa(w.hook.port)}
}

func (a attacker) dial() (*tls.Conn, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.address)}, Timeout: 20 * time.Second}
	return tls.DialWithDialer(dialer, "tcp", a.to, &tls.Config{InsecureSkipVerify: true}) // An attacker does not care who answers.
}

// send writes a request as it is, and reads the answer if there is one.
func (a attacker) send(raw []byte) (code int, body string, err error) {
	conn, err := a.dial()
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, "", err
	}
	if _, err := conn.Write(raw); err != nil {
		return 0, "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

func request(path, contentType string, body []byte) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", path, contentType, len(body))
	return append([]byte(head), body...)
}

const begin = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"forged"`

// Whatever is sent to the port, it is answered without a panic, and the API
// server is served as before.
func TestAnAttackOnThePortHarmsNobody(t *testing.T) {
	const jsonType = "application/json"
	object := func(object string) []byte {
		return []byte(begin + `,"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},` +
			`"namespace":"guarded-by-nobody","name":"x","operation":"CREATE","userInfo":{"username":"x"},"object":` + object + `}}`)
	}
	tests := map[string]struct {
		raw  []byte
		code int
		want string
		cut  bool // the answer may be lost, as the connection ends while more is sent
	}{
		"garbage for TLS's content":         {raw: []byte("\x00\x01\x02garbage\r\n\r\n"), code: 400},
		"a header of a megabyte":            {raw: []byte("POST /mutate HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), code: 431},
		"another path":                      {raw: request("/inject", jsonType, nil), code: 404},
		"a GET":                             {raw: []byte("GET /mutate HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), code: 415},
		"another content type":              {raw: request("/mutate", "text/html", []byte("x")), code: 415},
		"HTTP/2 by prior knowledge":         {raw: []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), code: 400},
		"nothing":                           {raw: request("/mutate", jsonType, nil), code: 400},
		"no JSON":                           {raw: request("/mutate", jsonType, []byte("hello")), code: 400},
		"no uid":                            {raw: request("/mutate", jsonType, []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}`)), code: 400},
		"a uid and nothing else":            {raw: request("/validate", jsonType, []byte(begin+`}}`)), code: 200, want: `"reason":"unknown_operation"`},
		"a review that breaks off":          {raw: request("/validate", jsonType, []byte(begin+`,"object":{"a":`)), code: 200, want: `"reason":"malformed"`},
		"bad UTF-8":                         {raw: request("/validate", jsonType, object("{\"a\":\"\xff\"}")), code: 200, want: `"allowed":true`},
		"a million brackets":                {raw: request("/validate", jsonType, object(strings.Repeat("[", 1<<20))), code: 200, want: `"reason":"malformed"`},
		"a million pairs of brackets":       {raw: request("/validate", jsonType, object(strings.Repeat(`{"a":`, 1<<19)+"1"+strings.Repeat("}", 1<<19))), code: 200, want: `"reason":"malformed"`},
		"8 MiB":                             {raw: request("/validate", jsonType, object(`{"a":"`+strings.Repeat("x", 8<<20)+`"}`)), code: 200, want: `"reason":"too_large"`},
		"more than it announces, pipelined": {raw: append(request("/mutate", jsonType, []byte("{}")), bytes.Repeat([]byte("x"), 1<<16)...), code: 400, cut: true},
		"two lengths":                       {raw: []byte("POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), code: 400},
		"a length and chunks":               {raw: []byte("POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"), code: 400},
	}
	a := newAttacker(t, "127.0.0.66")
	panics := w.hook.metric("plumbline_admission_unassessed_total", `reason="panic"`)
	started := w.hook.metric("process_start_time_seconds")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, body, err := a.send(tc.raw)
			if tc.cut && err != nil {
				return
			}
			if code != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("%d %.300q (%v), want %d with %q", code, body, err, tc.code, tc.want)
			}
			if code == http.StatusOK && (!strings.Contains(body, `"uid":"forged"`) || !strings.Contains(body, `"allowed":true`)) {
				t.Errorf("answer %.300q", body)
			}
		})
	}
	if n := w.hook.metric("plumbline_admission_unassessed_total", `reason="panic"`) - panics; n != 0 {
		t.Errorf("%v panics", n)
	}
	if got := w.hook.metric("process_start_time_seconds"); got != started || started <= 0 {
		t.Error("the process was restarted")
	}
	p := newPlace(t, unchanged)
	p.deploy(ci)
	p.mustBeStamped(ci)
}

// A forged review that says "the trusted pipeline did it" leaves a record that
// says of itself that nobody vouches for it, and changes nothing.
func TestAForgedReviewAuthorizesNothing(t *testing.T) {
	p := newPlace(t, unchanged)
	p.deploy(ci)
	body, before := p.live()
	forged := fmt.Sprintf(begin+`,"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},`+
		`"namespace":%q,"name":"web","operation":"UPDATE","userInfo":{"username":%q},"object":%s,"oldObject":%s}}`,
		p.namespace, ci, bytes.Replace(body, []byte("shop/web:1"), []byte("evil:1"), 1), body)
	for _, path := range []string{"/mutate", "/validate"} {
		if code, answer, err := newAttacker(t, "127.0.0.67").send(request(path, "application/json", []byte(forged))); code != http.StatusOK {
			t.Fatalf("%s: %d %s (%v)", path, code, answer, err)
		}
	}
	rec := p.waitRecord("the forged review", func(r specguard.WriteRecord) bool { return r.Operation == specguard.OperationUpdate })
	if rec.Authenticated || rec.User != ci {
		t.Errorf("record %+v", rec)
	}
	after, annotations := p.live()
	if !bytes.Equal(body, after) || annotations["plumbline.dev/writer"] != before["plumbline.dev/writer"] {
		t.Error("the object changed")
	}
	// What the attacker then really writes is his.
	if _, err := as(t, alice).AppsV1().Deployments(p.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.mustBeStamped(alice)
}
