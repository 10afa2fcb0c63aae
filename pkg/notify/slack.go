// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxChat is the length of a chat's text in bytes. Slack cuts at 40,000
// characters and Mattermost splits at 16,383. The facts and the link fit even
// when every character of them is escaped; only targets may have to go.
const maxChat = 16_000

// chatMessage is what incoming webhooks of Slack and Mattermost both take.
// Formatting is left out: what is bold to one is italic to the other.
type chatMessage struct {
	Channel     string `json:"channel,omitempty"`
	Text        string `json:"text"`
	UnfurlLinks bool   `json:"unfurl_links"`
	UnfurlMedia bool   `json:"unfurl_media"`
}

// SlackMessage is the body for a Slack-compatible incoming webhook. Text that
// comes from the cluster can neither mention anybody nor link anywhere.
// ErrUnknownEvent is the only error.
func SlackMessage(e Event, c SlackChannel) ([]byte, error) {
	e = e.Bounded()
	if !e.Type.Known() {
		return nil, fmt.Errorf("rendering for a chat: %w", ErrUnknownEvent)
	}
	text := body(e, chatQuote, chatLink, maxChat)
	return encode(chatMessage{Channel: c.Channel, Text: strings.TrimSuffix(text, "\n")})
}

// chatLink is our own link: its characters are those that safeLink lets through.
func chatLink(url string) string {
	return "<" + chatEscaper.Replace(url) + "|Open the plan>"
}

func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding an event: %w", err)
	}
	return raw, nil
}
