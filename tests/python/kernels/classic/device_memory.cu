// Memory that threads allocate, and linked lists in it.
struct Node {
    int value;
    Node *next;
};

__global__ void lists(int *out, int length) {
    Node *head = 0;
    for (int k = 0; k < length; ++k) {
        Node *node = (Node *)malloc(sizeof(Node));
        if (!node) {
            out[threadIdx.x] = -1;
            return;
        }
        node->value = k * (int)(threadIdx.x + 1);
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        Node *next = head->next;
        sum = sum * 3 + head->value;
        free(head);
        head = next;
    }
    int copy[4];
    memset(copy, 0, sizeof copy);
    memcpy(&copy[2], &sum, sizeof sum);
    out[threadIdx.x] = copy[2] + copy[0] + copy[3];
}
