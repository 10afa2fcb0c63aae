// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// seenBudget is what a call to Redis about what was told may take: nobody waits
// for it, and a call that was cut short tells somebody twice.
const seenBudget = time.Second

// purposeOfMarks is that of the key which authenticates in Redis what was told.
const purposeOfMarks = "plumbline.dev notifications told"

// notifications say how the process tells people. Without Redis, or without a key that
// users of Redis do not have, it remembers what it told only as long as it lives.
func notifications(opts *assessor.Options, mine *notifier.Options, key []byte) (notifier.Settings, error) {
	egress, err := mine.Rules()
	if err != nil {
		return notifier.Settings{}, err
	}
	settings := notifier.Settings{Egress: egress}
	if opts.Redis.Address != "" && len(key) > 0 {
		redis := opts.Redis.Details()
		redis.CallBudget = max(seenBudget, opts.Redis.Timeout)
		settings.Seen = notifier.NewRedisSeen(details.NewClient(redis), opts.Redis.KeyPrefix, key)
	}
	return settings, nil
}
