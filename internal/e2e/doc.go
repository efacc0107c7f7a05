// Command e2e builds the real components.
package main
