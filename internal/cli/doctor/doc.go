// SPDX-License-Identifier: Apache-2.0

// Package doctor is "kubectl plumbline doctor": it examines the installation.
//
// internal/doctor has the checks, and internal/doctor/gather reads the cluster.
package doctor
