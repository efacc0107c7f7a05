package ipvs

// Settle is settle, which cannot be made to see an unsteady table from outside.
var Settle = settle

// What settle is told of each read.
const (
	InPieces = inPieces
	Whole    = whole
	Unsteady = unsteady
)

// Reading is reading.
type Reading = reading
