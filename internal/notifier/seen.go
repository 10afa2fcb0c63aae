// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
)

// Remembered is how long Redis remembers what was told, since it was told or asked
// about last. A drift that waits for a person is told anew at every start of the
// assessor, and must not reach that person each time.
const Remembered = 7 * 24 * time.Hour

// RedisSeen remembers in Redis what was told. It may be lost: then something is
// told once more, with the id that it had. Each mark is authenticated, because others may
// write to Redis and the id of an event can be computed from what the API shows.
type RedisSeen struct {
	client redis.Cmdable
	prefix string
	key    []byte
}

// NewRedisSeen uses keys "<prefix>:told:…", and the commands SET and GETEX on them. The
// key authenticates marks, and is no secret that users of Redis know. Without a key no
// mark proves anything.
func NewRedisSeen(client redis.Cmdable, prefix string, key []byte) *RedisSeen {
	return &RedisSeen{client: client, prefix: prefix, key: key}
}

// mark computes the value that is stored for an event on a channel: a mark that is copied
// to another event or channel proves nothing there.
func (s *RedisSeen) mark(channel, id string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(id + "\x00" + channel)) // an id has no zero byte
	return hex.EncodeToString(h.Sum(nil))
}

// name of a mark in Redis. It holds no name of a policy, which may be long, and hold
// anything.
func (s *RedisSeen) name(channel, id string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + channel)) // an id has no zero byte
	return s.prefix + ":told:" + hex.EncodeToString(sum[:16])
}

// Seen implements deliver.Seen.
func (s *RedisSeen) Seen(ctx context.Context, channel, id string) (deliver.Claim, error) {
	stored, err := s.client.GetEx(ctx, s.name(channel, id), Remembered).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return deliver.NotTold, nil
	case err != nil:
		return deliver.NotTold, fmt.Errorf("asking Redis for sent notifications: %w", err)
	case len(s.key) > 0 && hmac.Equal([]byte(stored), []byte(s.mark(channel, id))):
		return deliver.Proven, nil
	}
	return deliver.Unproven, nil
}

// Mark implements deliver.Seen.
func (s *RedisSeen) Mark(ctx context.Context, channel, id string) error {
	if err := s.client.Set(ctx, s.name(channel, id), s.mark(channel, id), Remembered).Err(); err != nil {
		return fmt.Errorf("noting sent notifications in Redis: %w", err)
	}
	return nil
}
