// Indices that count from the start or the end of an axis.

// Stores the position on the axis; returns false if the index is out of bounds.
template <class T>
DEVICE bool resolve(T index, i64 length, i64* position) {
    i64 place = (i64)index;
    if (place < 0) {
        place += length;
    }
    *position = place;
    return place >= 0 && place < length;
}
DEVICE bool resolve(u64 index, i64 length, i64* position) {
    *position = (i64)index;
    return index < (u64)length;
}
