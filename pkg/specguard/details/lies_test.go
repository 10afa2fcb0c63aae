// SPDX-License-Identifier: Apache-2.0

package details

import (
	"bufio"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// lie is what a server answers every command with.
type lie func(io.Writer) error

func text(s string) lie {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// endless begins like that and never ends.
func endless(begin, again string) lie {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, begin)
		again := strings.Repeat(again, 1+(64<<10)/len(again))
		for err == nil {
			_, err = io.WriteString(w, again)
		}
		return err
	}
}

// lies are answers that no Redis gives. The number of bytes in them is bounded
// by the budget of a call alone.
var lies = map[string]lie{
	"nothing that is RESP":            text("HTTP/1.1 400 Bad Request\r\n\r\n"),
	"an empty line":                   text("\r\n"),
	"an empty error":                  text("-\r\n"),
	"half a line":                     text("+O"),
	"a status":                        text("+OK\r\n"),
	"a number":                        text(":9223372036854775807\r\n"),
	"null":                            text("$-1\r\n"),
	"a null array":                    text("*-1\r\n"),
	"an empty array":                  text("*0\r\n"),
	"two answers for one question":    text("+OK\r\n+OK\r\n"),
	"a redirection":                   text("-MOVED 1 127.0.0.1:1\r\n"),
	"another redirection":             text("-ASK 1 127.0.0.1:1\r\n"),
	"a refusal":                       text("-NOAUTH Authentication required.\r\n"),
	"loading":                         text("-LOADING Redis is loading the dataset in memory\r\n"),
	"a negative length":               text("$-2\r\n"),
	"a length that is no number":      text("$many\r\n"),
	"a length of twenty digits":       text("$99999999999999999999\r\n"),
	"the largest bulk":                text("$9223372036854775807\r\nx"),
	"a bulk two bytes below":          text("$9223372036854775805\r\nx"),
	"a bulk of a terabyte":            text("$1099511627776\r\nx"),
	"the largest array":               text("*9223372036854775807\r\n"),
	"an array of a billion":           text("*1000000000\r\n"),
	"an error of a terabyte":          text("!1099511627776\r\n"),
	"a map of a billion":              text("%1000000000\r\n"),
	"an attribute of a billion":       text("|1000000000\r\n+a\r\n"),
	"a push of a billion":             text(">1000000000\r\n$10\r\ninvalidate\r\n"),
	"pushes without end":              endless("", ">2\r\n+message\r\n+x\r\n"),
	"statuses without end":            endless("", "+OK\r\n"),
	"a line without end":              endless("+", "x"),
	"a bulk without end":              endless("$1000000000\r\n", "x"),
	"arrays in arrays without end":    endless("", "*1\r\n"),
	"wide arrays in arrays":           endless("", "*4000\r\n"),
	"an array of strings without end": endless("*1000000000\r\n", "$1\r\nx\r\n"),
	"a stream without end":            endless("*1\r\n*2\r\n$1\r\nk\r\n*1000000000\r\n", "*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nr\r\n$2\r\n{}\r\n"),
	"info of nonsense": text("*8\r\n$6\r\nlength\r\n:-5\r\n$13\r\nentries-added\r\n:9223372036854775807\r\n" +
		"$17\r\nlast-generated-id\r\n$7\r\ngarbage\r\n$11\r\nfirst-entry\r\n*2\r\n$1\r\nx\r\n*0\r\n"),
	"info of a stream of the future": text("*6\r\n$6\r\nlength\r\n:1\r\n$13\r\nentries-added\r\n:1\r\n" +
		"$17\r\nlast-generated-id\r\n$41\r\n18446744073709551615-18446744073709551615\r\n"),
}

// goodInfo describes a stream with one record.
const goodInfo = "*8\r\n$6\r\nlength\r\n:1\r\n$13\r\nentries-added\r\n:1\r\n" +
	"$17\r\nlast-generated-id\r\n$3\r\n9-1\r\n$11\r\nfirst-entry\r\n*2\r\n$3\r\n9-1\r\n*2\r\n$1\r\nr\r\n$2\r\n{}\r\n"

// places are where in an answer a lie may stand: what comes before it, and
// whether the stream was described truly before.
var places = map[string]struct {
	info   bool
	before string
}{
	"at once":                      {},
	"as a key of the description":  {before: "*2\r\n"},
	"under an unknown key":         {before: "*2\r\n$7\r\nunknown\r\n"},
	"in the first entry":           {before: "*2\r\n$11\r\nfirst-entry\r\n*2\r\n$3\r\n1-1\r\n"},
	"in place of the streams":      {info: true},
	"in place of the records":      {info: true, before: "*1\r\n*2\r\n$9\r\nt:details\r\n"},
	"in place of a record's field": {info: true, before: "*1\r\n*2\r\n$9\r\nt:details\r\n*1\r\n*2\r\n$3\r\n9-1\r\n*2\r\n"},
}

// liar is a server that tells one lie at one place, whatever it is asked.
func liar(t *testing.T, place string, tell lie) (socket string) {
	t.Helper()
	socket = filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(command string, to io.Writer) error {
		if places[place].info && command == "xinfo" {
			return text(goodInfo)(to)
		}
		if err := text(places[place].before)(to); err != nil {
			return err
		}
		return tell(to)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				questions := bufio.NewReader(c)
				for {
					command, err := question(questions)
					if err != nil || answer(command, c) != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return socket
}

// question reads one command and gives its name.
func question(from *bufio.Reader) (name string, err error) {
	line := func() string {
		var s string
		if err == nil {
			s, err = from.ReadString('\n')
		}
		return strings.TrimSpace(s)
	}
	words, parseErr := strconv.Atoi(strings.TrimPrefix(line(), "*"))
	for n := range words {
		_ = line() // its length; no word of ours has a line break
		if word := line(); n == 0 {
			name = strings.ToLower(word)
		}
	}
	return name, errors.Join(err, parseErr)
}

// Whatever Redis answers, nothing is taken for a record, the process goes on,
// and memory is bounded.
func TestLies(t *testing.T) {
	const memory = 128 << 20
	for place := range places {
		for name, tell := range lies {
			t.Run(name+" "+place, func(t *testing.T) {
				client := NewClient(Config{Address: liar(t, place, tell)})
				t.Cleanup(func() { _ = client.Close() })
				r, w := NewReader(client, "t"), NewWriter(client, "t", 0, discard())
				pump := &pump{Writer: w, batch: []specguard.WriteRecord{record(1)}}
				var err error
				for what, do := range map[string]func(){
					"writing": func() { _ = pump.send(t.Context()) }, // "+OK" is a lie that nobody can tell
					"reading": func() {
						var batch Batch
						if batch, err = r.Next(t.Context(), "5-0", 500, 0); len(batch.Entries) > 0 {
							t.Errorf("a lie was taken for %d records", len(batch.Entries))
						}
					},
				} {
					if allocated := allocations(do); allocated > memory {
						t.Errorf("%s took %d MiB", what, allocated>>20)
					}
				}
				if r.Healthy() != (err == nil) {
					t.Errorf("healthy is %v after %v", r.Healthy(), err)
				}
			})
		}
	}
}

// allocations are the bytes that a function allocates.
func allocations(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
