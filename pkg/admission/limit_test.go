// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOneCallerCannotTakeTheShareOfAnother(t *testing.T) {
	l := NewLimits(3)
	var taken []*place
	for range 3 {
		taken = append(taken, l.enter("10.0.0.1:1000"))
	}
	if l.enter("10.0.0.1:2000") != nil {
		t.Error("a caller got more than its share of reviews by another port")
	}
	api := l.enter("10.0.0.2:1000")
	if api == nil {
		t.Fatal("another caller got nothing")
	}
	if !taken[0].grow(maxBytesOfCaller) || taken[1].grow(1) {
		t.Error("a caller's bytes are not bounded to its share")
	}
	if !api.grow(maxBytesOfCaller) || api.grow(1) {
		t.Error("another caller did not get its share of bytes, or more")
	}
	third := l.enter("10.0.0.3:1")
	if third.grow(1) {
		t.Error("the bytes of all together are not bounded")
	}
	for _, p := range append(taken, api, third) {
		p.leave()
	}
	if l.bytes != 0 || len(l.callers) != 0 {
		t.Errorf("%d bytes and %d callers are left", l.bytes, len(l.callers))
	}
}

// The limits against a twin that adds up from scratch.
func TestLimitsCountRight(t *testing.T) {
	type share struct {
		from  string
		bytes int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		l := NewLimits(3)
		held := map[*place]*share{}
		var order []*place
		sum := func(from string) (reviews int, bytes int64) {
			for _, s := range held {
				if from == "" || s.from == from {
					reviews, bytes = reviews+1, bytes+s.bytes
				}
			}
			return reviews, bytes
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if len(order) == 0 || rapid.Bool().Draw(rt, "enter") {
				from := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "from")
				reviews, _ := sum(from)
				p := l.enter(from + ":1")
				if (p != nil) != (reviews < 3) {
					rt.Fatalf("%s holds %d reviews; entered: %v", from, reviews, p != nil)
				}
				if p != nil {
					held[p] = &share{from: from}
					order = append(order, p)
				}
				continue
			}
			i := rapid.IntRange(0, len(order)-1).Draw(rt, "which")
			p := order[i]
			if rapid.Bool().Draw(rt, "grow") {
				n := rapid.Int64Range(0, MaxBodyBytes).Draw(rt, "bytes")
				_, own := sum(held[p].from)
				_, all := sum("")
				want := own+n <= maxBytesOfCaller && all+n <= maxBytesInFlight
				if p.grow(n) != want {
					rt.Fatalf("%d bytes with %d own and %d in all: granted %v", n, own, all, !want)
				}
				if want {
					held[p].bytes += n
				}
				continue
			}
			p.leave()
			delete(held, p)
			order = append(order[:i], order[i+1:]...)
		}
		if _, all := sum(""); l.bytes != all {
			rt.Fatalf("counts %d bytes, holds %d", l.bytes, all)
		}
	})
}

func TestBodiesAreReadAsTheyCome(t *testing.T) {
	long := strings.Repeat("0123456789", 5000)
	tests := map[string]struct {
		from      io.Reader
		announced int64
		want      string
		err       error
	}{
		"nothing":                         {from: strings.NewReader(""), announced: 0},
		"one byte":                        {from: strings.NewReader("x"), announced: 1, want: "x"},
		"byte by byte":                    {from: iotest.OneByteReader(strings.NewReader(long)), announced: int64(len(long)), want: long},
		"of unknown length":               {from: strings.NewReader(long), announced: -1, want: long},
		"data together with the end":      {from: iotest.DataErrReader(strings.NewReader(long)), announced: int64(len(long)), want: long},
		"the largest":                     {from: bytes.NewReader(make([]byte, MaxBodyBytes)), announced: MaxBodyBytes, want: string(make([]byte, MaxBodyBytes))},
		"one byte more":                   {from: bytes.NewReader(make([]byte, MaxBodyBytes+1)), announced: -1, err: errTooLarge},
		"announced as too large":          {from: bytes.NewReader(make([]byte, MaxBodyBytes+1)), announced: MaxBodyBytes + 1, err: errTooLarge},
		"that breaks off, with its bytes": {from: io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), announced: 9, want: "abc", err: io.ErrUnexpectedEOF},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewLimits(1).enter("a:1")
			b, err := readBody(tc.from, tc.announced, p)
			defer b.free()
			if !errors.Is(err, tc.err) || (tc.err == nil && err != nil) {
				t.Fatalf("err %v, want %v", err, tc.err)
			}
			if !errors.Is(err, errTooLarge) && string(b.bytes) != tc.want {
				t.Errorf("%d bytes, want %d", len(b.bytes), len(tc.want))
			}
			if int64(cap(b.bytes)) > p.bytes {
				t.Errorf("a buffer of %d bytes is charged with %d", cap(b.bytes), p.bytes)
			}
		})
	}
}

func TestWhatIsAnnouncedCostsNothingBeforeItComes(t *testing.T) {
	p := NewLimits(1).enter("a:1")
	b := body{pooled: new([]byte)} // Not one that had a large body before.
	if err := b.room(MaxBodyBytes, p); err != nil {
		t.Fatal(err)
	}
	if cap(b.bytes) > prefixBytes {
		t.Errorf("an announcement alone costs %d bytes", cap(b.bytes))
	}
}

func TestABufferOfMoreThanAMegabyteIsNotKept(t *testing.T) {
	for size, kept := range map[int]bool{prefixBytes: true, 1 << 20: true, 1<<20 + 1: false} {
		b := body{pooled: new([]byte), bytes: make([]byte, 0, size)}
		b.free()
		if got := cap(*b.pooled) == size; got != kept {
			t.Errorf("a buffer of %d bytes is kept: %t, want %t", size, got, kept)
		}
	}
}

func TestABodyWithoutRoomIsShedWithItsUID(t *testing.T) {
	limits := NewLimits(10)
	metrics := NewMetrics()
	s := served{NewHandler("test", allow, HandlerConfig{Metrics: metrics, Log: quiet(), Limits: limits}), metrics}
	// httptest's requests come from this address.
	hog := limits.enter("192.0.2.1:1")
	if !hog.grow(maxBytesOfCaller - 8<<10) {
		t.Fatal("no room for the hog")
	}
	large := envelope(t, create(alice, deployment(t, image(strings.Repeat("x", 64<<10)))))
	got := responseOf(t, s.post(bytes.NewReader(large), jsonType))
	if diff := cmp.Diff(map[string]string{"verdict": "unassessed", "reason": "shed"}, got.AuditAnnotations); diff != "" || got.UID != "r-1" || !got.Allowed {
		t.Errorf("%+v (-want +got)\n%s", got, diff)
	}
	hog.leave()
	if got := responseOf(t, s.post(bytes.NewReader(large), jsonType)); got.AuditAnnotations != nil {
		t.Errorf("with room again: %v", got.AuditAnnotations)
	}
	if limits.bytes != 0 {
		t.Errorf("%d bytes are never given back", limits.bytes)
	}
}

// countingBody tells how much of it was read.
type countingBody struct {
	io.Reader
	n int
}

func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestAShedReviewIsTakenToItsEnd(t *testing.T) {
	limits := NewLimits(1)
	blocked := limits.enter("192.0.2.1:1")
	defer blocked.leave()
	h := NewHandler("test", allow, HandlerConfig{Metrics: NewMetrics(), Log: quiet(), Limits: limits})
	raw := envelope(t, create(alice, deployment(t, image(strings.Repeat("x", 1<<20)))))
	b := &countingBody{Reader: bytes.NewReader(raw)}
	req := httptest.NewRequest(http.MethodPost, "/", b)
	req.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if got := responseOf(t, w); got.UID != "r-1" || got.AuditAnnotations["reason"] != "shed" {
		t.Errorf("answer %+v", got)
	}
	if b.n != len(raw) {
		t.Errorf("%d of %d bytes were taken; the answer could be lost with the connection", b.n, len(raw))
	}
}
