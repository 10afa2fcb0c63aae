// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func encoded(t fataler, s *State) []byte {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t fataler, data []byte) *State {
	t.Helper()
	s, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// all compares each field of a state, but for the room for its work.
var all = gocmp.Options{
	gocmp.AllowUnexported(State{}, grid{}, arm{}, sums{}, stage{}, part{}, voice{}, recent{}),
	cmpopts.IgnoreFields(State{}, "order"),
}

// empty lists are none.
var empty = cmpopts.EquateEmpty()

func TestACheckpointCarriesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := measure(history(t))
		s := counted(m)
		s.restarts = rapid.IntRange(0, MaxRestarts).Draw(t, "restarts")
		data := encoded(t, s)
		read := decoded(t, data)
		if again := encoded(t, read); !bytes.Equal(data, again) {
			t.Fatalf("read and written again, the checkpoint is\n%x, want\n%x", again, data)
		}
		if d := gocmp.Diff(s, read, all, empty); d != "" {
			t.Fatalf("what was read (-want +got):\n%s", d)
		}
		c := DefaultConfig("canary", "stable")
		for i := range m.Cells {
			m.Cells[i].Position.Epoch = 2
			m.Next[m.Cells[i].Part] = m.Cells[i].Position
		}
		s.Count(&c, &m)
		read.Count(&c, &m)
		if d := gocmp.Diff(judged(s), judged(read)); d != "" {
			t.Fatalf("after the checkpoint (-want +got):\n%s", d)
		}
	})
}

// busy is a state as large as they get.
func busy(parts int) *State {
	w := usual()
	w.proxies, w.slow = equal(60), 3
	random := rand.New(rand.NewPCG(1, 2))
	c := DefaultConfig("canary", "stable")
	s := New(DefaultR0, 1)
	s.threshold, s.width = 5, 8
	s.Enter(Stage{Number: 3, Sequences: []uint64{7, 1_000_007, 1_000_009}, LatencyFrom: noon})
	for at := 0; at < 3600; at += 10 {
		m := w.cells(random, at, 7, 3, 1)
		for i := range m.Cells {
			m.Cells[i].Over, m.Cells[i].Failed = m.Cells[i].Over*1000, m.Cells[i].Failed*1000
			m.Cells[i].Loudest.ID |= 1 << 63
		}
		s.Count(&c, &m)
	}
	s.stage.buckets, s.stage.controlBuckets = make([]uint64, 34), make([]uint64, 34)
	for i := range s.stage.buckets {
		s.stage.buckets[i], s.stage.controlBuckets[i] = 1<<20, 1<<30
	}
	at := s.parts[0].at
	at.Epoch = noon.UnixNano()
	s.parts = nil
	for i := range parts {
		*s.part(fmt.Sprintf("plumbline-xds-7c9f6d8b5-%05d", i)) = part{
			name: fmt.Sprintf("plumbline-xds-7c9f6d8b5-%05d", i), at: at, start: seconds(noon), expected: 500, fleet: 300, gone: i >= 6,
		}
	}
	return s
}

func TestACheckpointIsSmall(t *testing.T) {
	large := busy(6)
	six := encoded(t, large)
	if d := gocmp.Diff(large, decoded(t, six), all); d != "" {
		t.Errorf("what was read (-want +got):\n%s", d)
	}
	t.Logf("a checkpoint after an hour of 60 proxies with six parts has %d bytes", len(six))
	many := encoded(t, busy(60))
	if len(many) > MaxCheckpoint || len(six) > MaxCheckpoint {
		t.Errorf("checkpoints have %d and %d bytes, want at most %d", len(six), len(many), MaxCheckpoint)
	}
	if len(many) < MaxCheckpoint-80 { // a part takes less than that
		t.Errorf("a checkpoint has %d bytes, so parts were left out without need", len(many))
	}
	if left := len(decoded(t, many).Cursor()); left != 6 {
		t.Errorf("of parts that still tell %d are left, want 6", left)
	}
	crowd := busy(6)
	for i := range 100 {
		crowd.part(fmt.Sprintf("%d-%s", i, strings.Repeat("x", 200)))
	}
	var size *SizeError
	if _, err := crowd.Encode(); !errors.As(err, &size) || size.Parts != 106 {
		t.Errorf("106 parts that still tell: %v, want a SizeError", err)
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	good := encoded(t, busy(3))
	cases := map[string]struct {
		data []byte
		want string
	}{
		"nothing":                   {nil, "reading the checkpoint of the judge: 0 bytes: malformed checkpoint"},
		"another version":           {append([]byte{2}, good[1:]...), "reading the checkpoint of the judge: version 2 of the checkpoint is not known, want 1"},
		"a byte too many":           {append(bytes.Clone(good), 0), "reading the checkpoint of the judge: bytes after the end: malformed checkpoint"},
		"too long":                  {make([]byte, MaxCheckpoint+1), "reading the checkpoint of the judge: 3073 bytes: malformed checkpoint"},
		"a ratio that is no number": {append([]byte{1, 0}, bytes.Repeat([]byte{0xff}, 8)...), "reading the checkpoint of the judge: a sum that cannot be: malformed checkpoint"},
		"a ratio below the lowest":  {append([]byte{1, 0, 0x3f, 0xf0}, make([]byte, 6)...), "reading the checkpoint of the judge: a ratio out of its bounds: malformed checkpoint"},
		"too many restarts":         {[]byte{1, 99}, "reading the checkpoint of the judge: a length that cannot be: malformed checkpoint"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(c.data)
			if err == nil || err.Error() != c.want {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			var version *VersionError
			if errors.Is(err, ErrMalformed) == errors.As(err, &version) {
				t.Errorf("%v is both or neither of malformed and another version", err)
			}
		})
	}
	for cut := range good {
		if _, err := Decode(good[:cut]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("the first %d bytes: %v, want that they are malformed", cut, err)
		}
	}
}

func TestAStateThatCannotBeIsRefused(t *testing.T) {
	cases := map[string]func(*State){
		"more failures than requests":        func(s *State) { s.canary.over = s.canary.failed - 1 },
		"more failures of proxies":           func(s *State) { s.stage.control.errors.n = s.stage.control.errors.x - 1 },
		"more slow requests than requests":   func(s *State) { s.control.latency.n = s.control.latency.x - 1 },
		"a count that cannot be added to":    func(s *State) { s.gaps = maxCount + 1 },
		"a voice with more failures":         func(s *State) { s.loudest[0] = voice{proxy: 1, credit: 1, x: 1} },
		"a voice with more failures of late": func(s *State) { s.loudest[0] = voice{proxy: 1, credit: 1, stageX: 1} },
		"a voice without credit":             func(s *State) { s.stage.busiest[1] = voice{proxy: 1} },
		"a part twice":                       func(s *State) { s.parts[1].name = s.parts[0].name },
		"parts out of order":                 func(s *State) { s.parts[0], s.parts[1] = s.parts[1], s.parts[0] },
		"a name that is not UTF-8":           func(s *State) { s.parts[2].name = "\xff" },
		"a bucket outside of all":            func(s *State) { s.threshold = s.width },
		"buckets without a threshold":        func(s *State) { s.threshold = noBucket },
		"a threshold without buckets":        func(s *State) { s.width = 0 },
		"a sum that is no number":            func(s *State) { s.canary.errors.nn = math.NaN() },
		"a sum that is infinite":             func(s *State) { s.canary.errors.xn = math.Inf(1) },
		"a sum that is negative":             func(s *State) { s.canary.errors.xx = -1 },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := busy(3)
			decoded(t, encoded(t, s))
			change(s)
			if got, err := Decode(encoded(t, s)); !errors.Is(err, ErrMalformed) {
				t.Errorf("it is read as %+v, %v", got, err)
			}
		})
	}
}

func TestWhatIsKnownOfPartsIsRead(t *testing.T) {
	for flags := range 8 {
		s := New(DefaultR0, 0)
		p := s.part("a")
		p.silent, p.lost, p.gone = flags&1 != 0, flags&2 != 0, flags&4 != 0
		if d := gocmp.Diff(s, decoded(t, encoded(t, s)), all, empty); d != "" {
			t.Errorf("what was read (-want +got):\n%s", d)
		}
	}
}

func TestAListIsNoLongerThanItsBound(t *testing.T) {
	c := codec{data: binary.AppendUvarint(nil, 1<<40)}
	var list []uint64
	if c.list(&list, maxBuckets); c.problem == "" || len(list) > 0 {
		t.Errorf("problem %q, and a list of %d", c.problem, len(list))
	}
}

func FuzzDecode(f *testing.F) {
	for _, parts := range []int{0, 3} {
		f.Add(encoded(f, busy(parts)))
	}
	f.Add(encoded(f, New(DefaultR0, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		again := encoded(t, s)
		if twice := encoded(t, decoded(t, again)); !bytes.Equal(again, twice) {
			t.Fatalf("written twice, the checkpoint is\n%x, then\n%x", again, twice)
		}
		m := measure([]told{{part: "a", port: 80, sequence: 7, variation: "canary", proxy: 1, n: 9, x: 3}, {part: "a", port: 80, sequence: 7, variation: "stable", proxy: 1, n: 9}})
		c := DefaultConfig("canary", "stable")
		s.Count(&c, &m)
		s.Enter(Stage{Number: 4, Sequences: []uint64{7}})
		if _, err := json.Marshal(judged(s)); err != nil {
			t.Fatalf("an assessment has numbers that are none: %v", err)
		}
	})
}

func TestACursorIsKeptOfPartsThatEnd(t *testing.T) {
	m := measure([]told{{part: "a", port: 80, variation: "canary", proxy: 1, n: 9, x: 3}, {part: "b", port: 80, variation: "canary", proxy: 1, n: 9}})
	s := counted(m)
	c := DefaultConfig("canary", "stable")
	at := traffic.Position{Epoch: 1, Cell: 1}
	s.Count(&c, &traffic.Measurement{Next: traffic.Cursor{"b": at}, Lost: []string{"a"}})
	if d := gocmp.Diff(traffic.Cursor{"b": at}, s.Cursor()); d != "" {
		t.Errorf("the cursor (-want +got):\n%s", d)
	}
	if !judged(s).ClockStands {
		t.Error("the clock runs although half of the proxies was lost")
	}
	over := s.canary.over
	s.Count(&c, &m) // it was not dead
	if d := gocmp.Diff(m.Next, s.Cursor()); d != "" || s.canary.over != over {
		t.Errorf("%d requests after %d; the cursor (-want +got):\n%s", s.canary.over, over, d)
	}
}
