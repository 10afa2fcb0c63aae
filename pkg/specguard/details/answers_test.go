// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

func TestAnswers(t *testing.T) {
	bulk := func(n int) string { return "$" + strconv.Itoa(n) + "\r\n" + strings.Repeat("x", n) + "\r\n" }
	tests := map[string]struct {
		answer string
		want   error
	}{
		"a status":                               {"+OK\r\n", nil},
		"an error":                               {"-ERR no such key\r\n", nil},
		"a string with line breaks and a length": {"$7\r\na\r\n$9\r\n\r\n", nil},
		"an empty string":                        {"$0\r\n\r\n", nil},
		"null":                                   {"$-1\r\n*-1\r\n", nil},
		"a description":                          {goodInfo, nil},
		"empty arrays in an array":               {"*2\r\n*0\r\n*0\r\n+next\r\n", nil},
		"several answers":                        {":1\r\n*1\r\n:2\r\n$1\r\nx\r\n", nil},
		"the largest string":                     {bulk(maxBulk), nil},
		"one byte more":                          {bulk(maxBulk + 1), errTooLarge},
		"the longest array":                      {"*" + strconv.Itoa(maxElements) + "\r\n" + strings.Repeat(":1\r\n", maxElements), nil},
		"one element more":                       {"*" + strconv.Itoa(maxElements+1) + "\r\n", errTooLarge},
		"the deepest arrays":                     {strings.Repeat("*1\r\n", maxNesting) + ":1\r\n", nil},
		"one deeper":                             {strings.Repeat("*1\r\n", maxNesting+1), errTooLarge},
		"the longest line":                       {"+" + strings.Repeat("x", maxLine-3) + "\r\n", nil},
		"one byte more in a line":                {"+" + strings.Repeat("x", maxLine-2) + "\r\n", errTooLarge},
		"an answer over the bound, of good pieces": {"*9\r\n" + strings.Repeat(bulk(maxBulk-100), 9), errTooLarge},
		"many answers, all of them together large": {strings.Repeat(bulk(maxBulk), 9), nil},
		"a length over every number":               {"$99999999999999999999\r\n", errTooLarge},
		"a length below null":                      {"$-2\r\n", errMalformed},
		"a length that is none":                    {"*x\r\n", errMalformed},
		"a line that ends wrongly":                 {"+OK\n", errMalformed},
		"an empty line":                            {"\r\n", errMalformed},
		"a push":                                   {">1\r\n", errMalformed},
		"a map":                                    {"%1\r\n", errMalformed},
		"an attribute":                             {"|1\r\n", errMalformed},
		"another protocol":                         {"HTTP/1.1 200 OK\r\n", errMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var a answers
			if err := a.take([]byte(test.answer)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.want == nil && (len(a.open) != 0 || a.bulk != 0 || a.size != 0 || len(a.line) != 0) {
				t.Errorf("it is not at the end of an answer: %+v", a)
			}
		})
	}
}

// However the network cuts an answer, it is judged alike.
func TestAnAnswerIsJudgedAlikeHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all strings.Builder
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"+OK\r\n", ":1\r\n", "$3\r\na\r\n\r\n", "$0\r\n\r\n", "$-1\r\n", "*0\r\n", "*2\r\n", "*1\r\n", "-ERR x\r\n", "*-1\r\n", "$2\r\n$1\r\n", "%1\r\n", "x",
		}), 0, 30).Draw(t, "pieces")
		for _, p := range pieces {
			all.WriteString(p)
		}
		data := []byte(all.String())
		var whole, cut answers
		want := whole.take(data)
		var got error
		for len(data) > 0 && got == nil {
			n := rapid.IntRange(1, len(data)).Draw(t, "n")
			got = cut.take(data[:n])
			data = data[n:]
		}
		if (want == nil) != (got == nil) {
			t.Fatalf("at once %v, cut %v", want, got)
		}
		if want == nil && (whole.size != cut.size || whole.bulk != cut.bulk || len(whole.open) != len(cut.open) || string(whole.line) != string(cut.line)) {
			t.Fatalf("at once %+v, cut %+v", whole, cut)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(goodInfo))
	f.Add([]byte("*1\r\n$1000000000\r\n"))
	f.Add([]byte("*-1\r\n$-1\r\n+\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answers
		err := a.take(data)
		if err == nil && (len(a.open) > maxNesting || len(a.line) > maxLine || a.bulk > maxBulk+2 || a.size > maxAnswer) {
			t.Errorf("bounds are broken: %d open, a line of %d, a string of %d, %d in all", len(a.open), len(a.line), a.bulk, a.size)
		}
		if err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errMalformed) {
			t.Errorf("an error without a class: %v", err)
		}
	})
}

// Many large records at once are no lie: they are read in smaller steps.
func TestManyLargeRecordsAreReadInSmallerSteps(t *testing.T) {
	const records = 300
	client := startServer(t).newClient(t)
	for n := range records {
		raw := `{"uid":"u` + strconv.Itoa(n) + `","operation":"UPDATE","kind":"Deployment","fields":["` + strings.Repeat("x", 60<<10) + `"]}`
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "t:details", Values: []any{"r", raw}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(client, "t")
	position, got, refused := Position(""), 0, 0
	for got < records && refused < 50 {
		batch, err := r.Next(t.Context(), position, MaxRead, 0)
		if err != nil {
			if !errors.Is(err, errTooLarge) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		got += len(batch.Entries)
		position = batch.Next
	}
	if got != records || refused == 0 {
		t.Errorf("read %d records after %d refusals", got, refused)
	}
}

func TestALongRecordKeepsWhatFits(t *testing.T) {
	path := "/spec/" + strings.Repeat("x", 1000)
	rec := record(1)
	rec.Fields, rec.Groups = slices.Repeat([]string{path}, 64), slices.Repeat([]string{"g"}, 1000)
	w := NewWriter(startServer(t).newClient(t), "t", 1, discard())
	if !w.Enqueue(rec) {
		t.Fatal("it was dropped")
	}
	got := <-w.queue
	// As many as a list has that may have touched anything.
	if len(got.Fields) != fullList || got.Fields[7] != path || got.Fields[8] != "" || len(got.Groups) != 240 || got.User != rec.User {
		t.Errorf("%d paths, %d groups", len(got.Fields), len(got.Groups))
	}
	if len(rec.Fields) != 64 || rec.Fields[8] != path {
		t.Error("the caller's record was changed")
	}
}

func TestARecordWithAnEndlessNameIsNone(t *testing.T) {
	for size, want := range map[int]bool{100: true, 8 << 10: false} {
		raw := `{"uid":"u","operation":"UPDATE","kind":"Deployment","name":"` + strings.Repeat("x", size) + `"}`
		if _, ok := decode(redis.XMessage{Values: map[string]any{recordField: raw}}); ok != want {
			t.Errorf("%d bytes: %v, want %v", size, ok, want)
		}
	}
}

// The pool looks at the socket of a connection between two calls; into one that
// speaks TLS it must not look.
func TestOnlyAPlainConnectionShowsItsSocket(t *testing.T) {
	socket := liar(t, "at once", text("+OK\r\n"))
	for name, test := range map[string]struct {
		hide bool
		want bool
	}{"plain": {false, true}, "TLS": {true, false}} {
		t.Run(name, func(t *testing.T) {
			dial := bounded(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if test.hide { // as tls.Conn does
					conn = struct{ net.Conn }{conn}
				}
				return conn, err
			})
			conn, err := dial(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, ok := conn.(syscall.Conn); ok != test.want {
				t.Errorf("shown: %v, want %v", ok, test.want)
			}
		})
	}
}

// Over TLS the bounds hold too.
func TestALieOverTLSIsRefused(t *testing.T) {
	dir := t.TempDir()
	certificate, key := authority(t, dir, "ca")
	address := startTLS(t, certificate, key)
	admin := NewClient(Config{Address: address, TLS: &TLS{CAFile: certificate}, CallBudget: 5 * time.Second})
	t.Cleanup(func() { _ = admin.Close() })
	// A real server, and a value that is longer than any answer may be.
	eventually(t, "the server answers", func() bool { return admin.Ping(t.Context()).Err() == nil })
	if err := admin.Set(t.Context(), "k", strings.Repeat("x", maxBulk+1), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), "k").Err(); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
	if err := admin.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if n := admin.PoolStats().Misses; n > 3 {
		t.Errorf("%d connections were made for a handful of calls", n)
	}
}
