// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Remembered is how long Redis remembers what was told, since it was told or asked
// about last. A drift that waits for a person is told anew at every start of the
// assessor, and must not reach that person each time.
const Remembered = 7 * 24 * time.Hour

// RedisSeen remembers in Redis what was told. It may be lost: then something is
// told once more, with the id that it had.
type RedisSeen struct {
	client redis.Cmdable
	prefix string
}

// NewRedisSeen uses keys "<prefix>:told:…", and the commands SET and GETEX on them.
func NewRedisSeen(client redis.Cmdable, prefix string) *RedisSeen {
	return &RedisSeen{client: client, prefix: prefix}
}

// key holds no name: a policy's may be long, and hold anything.
func (s *RedisSeen) key(channel, id string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + channel)) // an id has no zero byte
	return s.prefix + ":told:" + hex.EncodeToString(sum[:16])
}

// Seen implements deliver.Seen.
func (s *RedisSeen) Seen(ctx context.Context, channel, id string) (bool, error) {
	err := s.client.GetEx(ctx, s.key(channel, id), Remembered).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking Redis what was told: %w", err)
	}
	return true, nil
}

// Mark implements deliver.Seen.
func (s *RedisSeen) Mark(ctx context.Context, channel, id string) error {
	if err := s.client.Set(ctx, s.key(channel, id), "1", Remembered).Err(); err != nil {
		return fmt.Errorf("noting in Redis what was told: %w", err)
	}
	return nil
}
