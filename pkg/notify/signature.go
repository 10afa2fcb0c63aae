// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks 1.0.0.
const (
	HeaderWebhookID        = "webhook-id"
	HeaderWebhookTimestamp = "webhook-timestamp"
	HeaderWebhookSignature = "webhook-signature"
)

// Bounds of signing keys: length in bytes by Standard Webhooks 1.0.0, "Signature
// scheme"; number so that a header stays short.
const (
	signingKeyPrefix = "whsec_"
	minSigningKey    = 24
	maxSigningKey    = 64
	maxSigningKeys   = 4
)

// ErrSigningKey is all that is said about a key that is none: the text would be
// part of a secret.
var ErrSigningKey = errors.New("a signing key is whsec_ and the base64 of 24 to 64 bytes; up to 4 may stand there, separated by spaces")

// ParseSigningKeys reads what a Secret holds: one key, or several separated by
// white space while keys are changed.
func ParseSigningKeys(secret string) ([][]byte, error) {
	fields := strings.Fields(secret)
	if len(fields) == 0 || len(fields) > maxSigningKeys {
		return nil, ErrSigningKey
	}
	keys := make([][]byte, len(fields))
	for i, field := range fields {
		encoded, ok := strings.CutPrefix(field, signingKeyPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < minSigningKey || len(key) > maxSigningKey {
			return nil, ErrSigningKey
		}
		keys[i] = key
	}
	return keys, nil
}

// Sign is the webhook-signature of Standard Webhooks 1.0.0: for each key "v1,"
// and the base64 of HMAC-SHA256 over "<id>.<seconds>.<payload>", separated by
// spaces. at is the time of the attempt, in whole seconds since 1970.
func Sign(keys [][]byte, id string, at time.Time, payload []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(payload)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
