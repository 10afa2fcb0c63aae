// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Position is a place in the stream: the ID of the last entry that was read.
// The empty Position is the beginning. It may be stored and used again by
// another process.
type Position string

// PositionAt is the place just before the first record written at t or later,
// by the clock of Redis.
func PositionAt(t time.Time) Position {
	ms := max(t.UnixMilli()-1, 0)
	return Position(strconv.FormatInt(ms, 10) + "-" + strconv.FormatUint(1<<64-1, 10))
}

// Entry is one record and its place.
type Entry struct {
	ID     Position
	Record specguard.WriteRecord
}

// Batch is what one read found.
type Batch struct {
	// Entries in the order in which Redis took them; empty means there are none.
	Entries []Entry
	// Next is where to read on. It moves past malformed entries too.
	Next Position
	// Gap says that entries between the given position and these may have been
	// lost: trimmed, or flushed away. What was not found is then unknown, not
	// absent.
	Gap bool
	// Malformed counts entries that were no records; they are skipped.
	Malformed int
}

// Bounds of one read.
const (
	// MaxRead is how many entries one read returns at most.
	MaxRead = 1000
	// MaxBlock is how long one read waits at most.
	MaxBlock = 5 * time.Second
	// timerRound is how late the server may end a wait in which nothing came: it
	// looks at waits when its timer fires, "hz" times a second (10 by default, 1
	// at least; redis.conf, "hz").
	timerRound = time.Second
)

// Reader reads the stream. It is used by one goroutine; Healthy may be called
// from any.
type Reader struct {
	client  redis.UniversalClient
	key     string
	budget  time.Duration // of one call
	healthy atomic.Bool
	// at and count say how many entries the stream had taken up to position at;
	// count is -1 when that is not known.
	at    Position
	count int64
	// most is how many entries one read may ask for: fewer after an answer over
	// the bound, for many large records at once are no lie.
	most int
}

// NewReader returns a reader of "<prefix>:details".
func NewReader(client redis.UniversalClient, prefix string) *Reader {
	return &Reader{client: client, key: streamKey(prefix), budget: budgetOf(client), count: -1, most: MaxRead}
}

// Healthy says that the last read reached Redis. While it is false, a record
// that was not found is unknown, not absent.
func (r *Reader) Healthy() bool { return r.healthy.Load() }

// Next reads up to limit (1 to MaxRead) entries after a position, and waits up
// to block (0 to MaxBlock) for the first one. An error means unknown: nothing
// may be concluded, and the position stays valid. The end of ctx is noticed when
// the server answers, which is a second after block at the latest; a server that
// answers later than that by more than the client's budget is an error.
func (r *Reader) Next(ctx context.Context, after Position, limit int, block time.Duration) (Batch, error) {
	batch, err := r.next(ctx, after, min(max(limit, 1), r.most), min(block, MaxBlock))
	r.healthy.Store(err == nil)
	switch {
	case err == nil:
		r.most = MaxRead
	case errors.Is(err, errTooLarge):
		r.most = max(1, min(limit, r.most)/8)
	}
	return batch, err
}

func (r *Reader) next(ctx context.Context, after Position, limit int, block time.Duration) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return Batch{}, err
	}
	state, err := r.inspect(ctx)
	if err != nil {
		return Batch{}, err
	}
	gap, from, count, err := r.resume(after, state)
	if err != nil {
		return Batch{}, err
	}
	messages, err := r.read(ctx, from, limit, block)
	if err != nil {
		return Batch{}, err
	}
	batch := Batch{Next: from, Gap: gap}
	for _, m := range messages {
		batch.Next = Position(m.ID)
		rec, ok := decode(m)
		if !ok {
			batch.Malformed++
			continue
		}
		batch.Entries = append(batch.Entries, Entry{ID: Position(m.ID), Record: rec})
	}
	r.at, r.count = batch.Next, count
	if count >= 0 {
		r.count += int64(len(messages))
	}
	return batch, nil
}

// streamState is what the server says about the stream; exists is false when
// there is none.
type streamState struct {
	exists bool
	length int64
	added  int64
	first  Position
	last   Position
}

func (r *Reader) inspect(ctx context.Context) (streamState, error) {
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	info, err := r.client.XInfoStream(ctx, r.key).Result()
	if err != nil {
		// The server's words for an absent stream; it has no code of its own.
		if strings.HasPrefix(err.Error(), "ERR no such key") {
			return streamState{}, nil
		}
		return streamState{}, fmt.Errorf("inspecting the details stream: %w", err)
	}
	return streamState{
		exists: true,
		length: info.Length,
		added:  info.EntriesAdded,
		first:  Position(info.FirstEntry.ID),
		last:   Position(info.LastGeneratedID),
	}, nil
}

// resume decides where to read on and whether entries were lost since. A
// stream that was flushed begins anew, so reading does too.
func (r *Reader) resume(after Position, s streamState) (gap bool, from Position, count int64, err error) {
	if after == "" {
		// From the beginning: every entry that was ever added and is not there
		// any more lies before the first one.
		return false, "0-0", s.added - s.length, nil
	}
	count = -1
	if r.at == after {
		count = r.count
	}
	beyond, err := after.after(s.last)
	if err != nil {
		return false, "", 0, err
	}
	gone := s.added - s.length // entries that were added once and are not there any more
	switch {
	case !s.exists, count > s.added, beyond && count >= 0:
		// Flushed since. A stream that never was has lost nothing.
		return count > 0 || (count < 0 && r.at != ""), "0-0", gone, nil
	case count >= 0:
		// Everything that is there is read, so what is gone is counted only once.
		return gone > count, after, max(count, gone), nil
	case beyond:
		// Our clock is ahead of the server's: nothing lies behind that position, and
		// what comes next would not for as long.
		return false, s.last, s.added, nil
	case s.length == 0:
		return after != s.last, s.last, gone, nil
	}
	lost, err := s.first.after(after)
	if !lost || err != nil {
		return false, after, -1, err
	}
	return gone > 0, after, gone, nil
}

func (r *Reader) read(ctx context.Context, from Position, limit int, block time.Duration) ([]redis.XMessage, error) {
	args := &redis.XReadArgs{Streams: []string{r.key, string(from)}, Count: int64(limit), Block: -1}
	budget := r.budget
	if block >= time.Millisecond {
		args.Block = block
		budget += block + timerRound
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	streams, err := r.client.XRead(ctx, args).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the details stream: %w", err)
	}
	var messages []redis.XMessage
	for _, s := range streams {
		messages = append(messages, s.Messages...)
	}
	return messages, nil
}

// decode reads one entry; anybody who may write to Redis may have put it there.
func decode(m redis.XMessage) (specguard.WriteRecord, bool) {
	raw, ok := m.Values[recordField].(string)
	if !ok {
		return specguard.WriteRecord{}, false
	}
	var rec specguard.WriteRecord
	if err := json.Unmarshal([]byte(raw), &rec); err != nil {
		return specguard.WriteRecord{}, false
	}
	shorten(&rec)
	return rec, rec.Operation != "" && rec.Kind != "" && !oversized(&rec)
}

// after reports whether p lies behind q. An empty position lies before all.
func (p Position) after(q Position) (bool, error) {
	pm, ps, err := p.parts()
	if err != nil {
		return false, err
	}
	qm, qs, err := q.parts()
	if err != nil {
		return false, err
	}
	return pm > qm || (pm == qm && ps > qs), nil
}

func (p Position) parts() (ms, seq uint64, err error) {
	if p == "" {
		return 0, 0, nil
	}
	left, right, ok := strings.Cut(string(p), "-")
	if ms, err = strconv.ParseUint(left, 10, 64); err == nil && ok {
		seq, err = strconv.ParseUint(right, 10, 64)
	}
	if err != nil || !ok {
		return 0, 0, fmt.Errorf("reading position %q: not <milliseconds>-<number>", string(p))
	}
	return ms, seq, nil
}
