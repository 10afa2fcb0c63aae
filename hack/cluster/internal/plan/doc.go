// SPDX-License-Identifier: Apache-2.0

// Package plan says what a cluster consists of: folders, configuration files,
// certificates and the command line of every process. It computes values from
// values and touches nothing, so that each setting, and the reason for it, can
// be read and tested in one place.
//
// Many settings differ from a production cluster's on purpose: speed of
// bring-up over durability, one replica of everything, no registry to pull from.
package plan
