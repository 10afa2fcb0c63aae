// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readable is a connection that is only read.
type readable struct {
	net.Conn
	io.Reader
}

func (r readable) Read(p []byte) (int, error) { return r.Reader.Read(p) }

func TestNoReadGivesSomethingOfTwoRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent []byte
		ends := map[int]bool{0: true}
		for _, length := range rapid.SliceOfN(rapid.IntRange(0, 1<<14+256), 0, 5).Draw(t, "lengths") {
			record := make([]byte, 5+length)
			_, _ = rand.Read(record) // never fails
			binary.BigEndian.PutUint16(record[3:], uint16(length))
			ends[len(sent)+5] = true
			sent = append(sent, record...)
			ends[len(sent)] = true
		}
		if cut := rapid.IntRange(0, len(sent)).Draw(t, "cut off at"); rapid.Bool().Draw(t, "it is cut off") {
			sent = sent[:cut]
		}
		source := io.Reader(bytes.NewReader(sent))
		if rapid.Bool().Draw(t, "it arrives in pieces") {
			source = iotest.HalfReader(source)
		}
		c := &recordConn{Conn: readable{Reader: source}}
		var got []byte
		for {
			p := make([]byte, rapid.IntRange(1, 40_000).Draw(t, "at most"))
			n, err := c.Read(p)
			for i := len(got) + 1; i < len(got)+n; i++ {
				if ends[i] {
					t.Fatalf("one read gives bytes %d to %d, and at %d a header or a record ends", len(got), len(got)+n, i)
				}
			}
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes came, and %d were sent; or they are others", len(got), len(sent))
		}
	})
}

// counting counts the calls of a connection.
type counting struct {
	readable
	calls int
}

func (c *counting) Read(p []byte) (int, error) {
	c.calls++
	return c.readable.Read(p)
}

func TestASmallRecordTakesOneCall(t *testing.T) {
	const records = 3
	for name, length := range map[string]int{"an acknowledgment": 200, "counts of two variations": 2_500} {
		t.Run(name, func(t *testing.T) {
			record := make([]byte, 5+length)
			binary.BigEndian.PutUint16(record[3:], uint16(length)) //nolint:gosec // small
			below := &counting{readable: readable{}}
			c := &recordConn{Conn: below}
			p := make([]byte, 18<<10) // as crypto/tls has it after a long record
			for range records {       // each has come when it is read, and nothing after it
				below.Reader = bytes.NewReader(record)
				for got := 0; got < len(record); {
					n, err := c.Read(p)
					if err != nil {
						t.Fatal(err)
					}
					got += n
				}
			}
			if below.calls != records {
				t.Errorf("%d records took %d calls", records, below.calls)
			}
			if c.buffer != nil {
				t.Error("a connection that waits keeps a buffer")
			}
		})
	}
}
